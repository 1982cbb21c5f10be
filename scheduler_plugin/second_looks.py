"""A refused pod is looked at again for a moment, before kube-scheduler is told.

kube-scheduler tries a pod because something changed: a pod ended, say. It hears of that at the same
time as this process, which may be the slower one. A refusal that is out of date by a few
milliseconds would keep the pod waiting until something else changes, or for five minutes.

Meanwhile kube-scheduler stands still. So looks take a small share of the time only; where many pods
are refused, something changes all the time, and they are tried again anyway.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import TypeVar

A = TypeVar("A")

STEP_SECONDS = 0.02
LONGEST_SECONDS = 0.1
"""Of one pod: more than a watch takes to bring what happened, on a machine that is not idle."""

SHARE = 0.1
"""Of all time, in the long run."""

SAVED_SECONDS = 1.0
"""How much time may be saved for a burst: this many seconds of looking."""


class SecondLooks:
    """The time for looking again that is left."""

    def __init__(self) -> None:
        self._saved = SAVED_SECONDS
        self._counted_at: float | None = None

    async def until(
        self, is_settled: Callable[[A], bool], answer: A, ask_again: Callable[[], A]
    ) -> A:
        """Ask until an answer needs no second look, or the time is over; returns the last one."""
        looked = 0.0
        while not is_settled(answer) and looked < LONGEST_SECONDS and self._take(STEP_SECONDS):
            await asyncio.sleep(STEP_SECONDS)
            looked += STEP_SECONDS
            answer = ask_again()
        return answer

    def _take(self, seconds: float) -> bool:
        now = asyncio.get_running_loop().time()
        gained = SHARE * (now - self._counted_at) if self._counted_at is not None else 0.0
        self._saved, self._counted_at = min(SAVED_SECONDS, self._saved + gained), now
        if self._saved < seconds:
            return False
        self._saved -= seconds
        return True
