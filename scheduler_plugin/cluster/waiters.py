"""Tasks that wait until a change makes a condition true; hundreds of binds wait concurrently."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection, Iterator
from typing import TypeAlias

from scheduler_plugin.accounting.world_changes import ClaimChanged, PodChanged, WorldChange

ANYTHING = ""

Waiter: TypeAlias = tuple[asyncio.Future[None], Callable[[], bool]]


class Waiters:
    """Conditions by the objects that they depend on.

    A change of a pod or claim evaluates only the conditions of that object.
    """

    def __init__(self) -> None:
        # The waiting futures and their conditions, by the UID of the object.
        self._about: dict[str, dict[asyncio.Future[None], Callable[[], bool]]] = {}

    def __len__(self) -> int:
        return len({waiter for waiters in self._about.values() for waiter in waiters})

    async def wait_for(
        self, condition: Callable[[], bool], seconds: float, about: Collection[str]
    ) -> bool:
        """Wait until a change makes the condition true; returns False after `seconds`.

        Args:
            condition: The condition; it is evaluated at once and after each change.
            seconds: How long to wait.
            about: UIDs of the pods and claims whose changes matter; empty for any change.
        """
        if condition():
            return True
        met = asyncio.get_running_loop().create_future()
        uids = about or (ANYTHING,)
        for uid in uids:
            self._about.setdefault(uid, {})[met] = condition
        try:
            async with asyncio.timeout(seconds):
                await met
        except TimeoutError:
            return condition()
        finally:
            self._leave(met, uids)
        return True

    def changed(self, change: WorldChange) -> None:
        """Evaluate the conditions that a change may concern."""
        for met, condition in list(self._concerned(change)):
            if not met.done() and condition():
                met.set_result(None)

    def _concerned(self, change: WorldChange) -> Iterator[Waiter]:
        match change:
            case ClaimChanged(uid) | PodChanged(uid):
                yield from self._about.get(uid, {}).items()
                yield from self._about.get(ANYTHING, {}).items()
            case _:
                for waiters in self._about.values():
                    yield from waiters.items()

    def _leave(self, met: asyncio.Future[None], uids: Collection[str]) -> None:
        for uid in uids:
            waiters = self._about[uid]
            del waiters[met]
            if not waiters:
                del self._about[uid]
