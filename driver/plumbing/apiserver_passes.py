"""Passes: the loop under everything that brings the API server to what was decided.

Whatever changes asks for a pass; a pass reads everything anew. So requests need not be counted,
and a pass that failed is done again by the same rule.
"""

from __future__ import annotations

import asyncio
import logging
import random
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Any, NoReturn, TypeVar

from driver.plumbing.prometheus import PASS_SECONDS, PASSES, counted
from kube.api import ApiError, Backoff, Change, Deleted

logger = logging.getLogger(__name__)

T = TypeVar("T")

DISAGREEMENT_SECONDS = 5.0
"""How soon an own object that somebody else changed is put right."""

_BACKOFF = Backoff(first_seconds=0.2, cap_seconds=10.0)


class Passes:
    """Runs one pass at a time, as often as it is asked for.

    Args:
        work: One pass; returns after how many seconds the next is due though nothing changes.
        name: Of what it brings about, for the log.
    """

    def __init__(self, work: Callable[[], Awaitable[float | None]], *, name: str) -> None:
        self._work = work
        self._name = name
        self._asked = asyncio.Event()
        self._asked.set()
        self._failures = 0
        self._later: asyncio.TimerHandle | None = None

    def ask(self) -> None:
        """Another pass, please; may be called from anywhere in the event loop."""
        self._asked.set()

    def ask_within(self, seconds: float) -> None:
        """A pass after this time, or sooner if an earlier request says so."""
        loop = asyncio.get_running_loop()
        if self._later is not None:
            if self._later.when() <= loop.time() + seconds:
                return
            self._later.cancel()
        self._later = loop.call_later(seconds, self._ask_late)

    def _ask_late(self) -> None:
        self._later = None
        self.ask()

    async def once(self) -> float | None:
        """One pass now, for whoever does not run them; its error is the caller's."""
        return await self._work()

    async def run(self) -> NoReturn:
        due: float | None = None
        while True:
            # Whoever is cancelled in a pass ends here, though it was asked for another meanwhile.
            await asyncio.sleep(0)
            # Not wait_for: up to Python 3.11 it can swallow a cancellation (python/cpython#86296).
            with suppress(TimeoutError):
                async with asyncio.timeout(due):
                    await self._asked.wait()
            self._asked.clear()
            try:
                with PASS_SECONDS.labels(self._name).time(), counted(PASSES, self._name):
                    due = await self.once()
                self._failures = 0
            except Exception as error:  # noqa: BLE001  An odd object must not end the process.
                self._failures += 1
                await asyncio.sleep(_delay(self._name, self._failures, error))
                self._asked.set()


async def until_done(work: Callable[[], Awaitable[T]], *, name: str) -> T:
    """Do this once, however often the API server has to be asked, and return what it says."""
    failures = 0
    while True:
        try:
            return await work()
        except ApiError as error:
            failures += 1
            await asyncio.sleep(_delay(name, failures, error))


def put_right(change: Change[Any], passes: Passes) -> None:
    """What was deleted is written anew at once, and what another wrote only after a while.

    During a rolling update two drivers may write the same objects and not agree: each would
    answer every write of the other.
    """
    if isinstance(change, Deleted):
        passes.ask()
    else:
        passes.ask_within(DISAGREEMENT_SECONDS)


def _delay(name: str, failures: int, error: Exception) -> float:
    delay = _BACKOFF.delay(failures, random.random)
    if not isinstance(error, ApiError):
        logger.warning("%s failed attempt=%d error=%s", name, failures, error, exc_info=error)
        return delay
    logger.warning("%s failed attempt=%d cause=%s error=%s", name, failures, error.cause, error)
    return max(delay, error.retry_after_seconds)
