"""Bounds the pods in flight to a binding: above the bound, Filter is answered later.

kube-scheduler calls Filter for one pod at a time, and does not wait for the reservations and
bindings of earlier pods. If the API server is slower than that, hundreds of writes exceed their
time limits, and pods that share a claim conflict.

A pod counts from Filter on, since kube-scheduler writes its reservations before it calls Bind. That
takes no longer than writes take. A pod without a Bind by then waits for its volume or a condition
of its device, which is no work for the API server.
"""

from __future__ import annotations

import asyncio
from collections.abc import Hashable

LONGEST_SECONDS = 0.2
"""How long an answer is delayed at most: kube-scheduler must not stand still."""

RESERVED_SECONDS = 1.0
"""How long kube-scheduler may take to reserve a pod's claims before it calls Bind."""


class Backlog:
    """The pods between Filter and the end of Bind."""

    def __init__(self, most: int) -> None:
        """`most` should be more than an API server serves concurrently."""
        self._most = most
        # The time until which each pod counts, the earliest first.
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
        """A Bind of a pod began: the pod counts until the Bind ends."""
        self._passed_until.pop(pod, None)
        self._binding.add(pod)

    def end(self, pod: Hashable) -> None:
        """The Bind of a pod ended, or Filter refused the pod."""
        if self._passed_until.pop(pod, None) is not None or pod in self._binding:
            self._binding.discard(pod)
            self._ended.set()

    async def next(self) -> None:
        """Wait until one more pod may be in flight, `LONGEST_SECONDS` at most."""
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
