"""How many pods may be on their way to a binding: beyond that, Filter is answered later.

kube-scheduler asks about one pod at a time, and does not wait for what it writes for those before:
their reservations and bindings pile up. Where the API server is slower than that, hundreds of
writes run out of their time, and pods that share a claim get in each other's way.

A pod counts from Filter on, since kube-scheduler writes its reservations before it asks for the
binding. That takes no longer than writes take: a pod that has not come to its binding by then waits
for something else, its volume or a condition of its device, and the API server has no work with it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Hashable

LONGEST_SECONDS = 0.2
"""What an answer is put off by at most, whatever is known: kube-scheduler must not stand still."""

RESERVED_SECONDS = 1.0
"""How long kube-scheduler may take to reserve a pod's claims before it asks for the binding."""


class Backlog:
    """The pods between Filter and the end of Bind."""

    def __init__(self, most: int) -> None:
        """`most` should be more than an API server works on at one time."""
        self._most = most
        # When each stops to count: the first is the first to do so.
        self._passed_until: dict[Hashable, float] = {}
        self._binding: set[Hashable] = set()
        self._ended = asyncio.Event()

    def __len__(self) -> int:
        return len(self._passed_until) + len(self._binding)

    def begin(self, pod: Hashable) -> None:
        """A pod passed Filter."""
        self._passed_until.pop(pod, None)
        if pod not in self._binding:
            self._passed_until[pod] = asyncio.get_running_loop().time() + RESERVED_SECONDS

    def bind(self, pod: Hashable) -> None:
        """A pod is being bound: it counts until that ends."""
        self._passed_until.pop(pod, None)
        self._binding.add(pod)

    def end(self, pod: Hashable) -> None:
        """A pod is bound, or was refused, or is asked about anew."""
        if self._passed_until.pop(pod, None) is not None or pod in self._binding:
            self._binding.discard(pod)
            self._ended.set()

    async def next(self) -> None:
        """Wait until there is room for one more, but not for long."""
        if self._has_room():
            return
        try:
            async with asyncio.timeout(LONGEST_SECONDS):
                while not self._has_room():
                    self._ended.clear()
                    await self._ended.wait()
        except TimeoutError:
            return

    def _has_room(self) -> bool:
        now = asyncio.get_running_loop().time()
        while self._passed_until and next(iter(self._passed_until.values())) <= now:
            del self._passed_until[next(iter(self._passed_until))]
        return len(self) < self._most
