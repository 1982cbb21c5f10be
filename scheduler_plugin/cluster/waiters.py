"""Those who wait until a change makes something true; hundreds of binds do at the same time."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass

from scheduler_plugin.accounting.world_changes import ClaimChanged, PodChanged, WorldChange

ANYTHING = ""


@dataclass(eq=False, slots=True)
class _Waiter:
    condition: Callable[[], bool]
    met: asyncio.Future[None]


class Waiters:
    """Conditions by the objects that they are about.

    A change of a pod or claim costs those who wait for that very object, and no others.
    """

    def __init__(self) -> None:
        self._about: dict[str, dict[_Waiter, None]] = {}

    def __len__(self) -> int:
        return len({waiter for waiters in self._about.values() for waiter in waiters})

    async def wait_for(
        self, condition: Callable[[], bool], seconds: float, about: Collection[str]
    ) -> bool:
        """Wait until a change makes the condition true; False if that took too long.

        Args:
            condition: What is waited for.
            seconds: For how long.
            about: UIDs of the pods and claims whose changes matter; empty for any change.
        """
        if condition():
            return True
        waiter = _Waiter(condition, asyncio.get_running_loop().create_future())
        uids = about or (ANYTHING,)
        for uid in uids:
            self._about.setdefault(uid, {})[waiter] = None
        try:
            async with asyncio.timeout(seconds):
                await waiter.met
        except TimeoutError:
            return condition()
        finally:
            self._leave(waiter, uids)
        return True

    def changed(self, change: WorldChange) -> None:
        """Ask those whom a change may concern."""
        for waiter in list(self._concerned(change)):
            if not waiter.met.done() and waiter.condition():
                waiter.met.set_result(None)

    def _concerned(self, change: WorldChange) -> Iterator[_Waiter]:
        match change:
            case ClaimChanged(uid) | PodChanged(uid):
                yield from self._about.get(uid, ())
                yield from self._about.get(ANYTHING, ())
            case _:
                for waiters in self._about.values():
                    yield from waiters

    def _leave(self, waiter: _Waiter, uids: Collection[str]) -> None:
        for uid in uids:
            waiters = self._about[uid]
            del waiters[waiter]
            if not waiters:
                del self._about[uid]
