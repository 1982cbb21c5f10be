"""The API server is asked for claims that a pod names and no watch has brought.

kube-scheduler knows a claim before it asks about its pod. Where the watch here does not bring it
soon, one read tells whether it is late, or the claim is gone; either way the world knows.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Iterable
from typing import NoReturn, TypeAlias

from kube.api import ApiError

logger = logging.getLogger(__name__)

ClaimKey: TypeAlias = tuple[str, str]
"""Namespace and name."""

MOST_ASKED = 1_000
"""Claims; of more, those that were asked for the longest ago are left to the watch."""

FAILED_SECONDS = 1.0
"""How long it rests after a read that failed: others may fail as well."""


class ClaimLookups:
    """Claims to be read, one after the other, while `run` runs; each once for all who ask."""

    def __init__(self, read: Callable[[str, str], Awaitable[object]]) -> None:
        """`read` reads a claim; what it is, or that there is none, is known from then on."""
        self._read = read
        self._asked: dict[ClaimKey, None] = {}
        self._news = asyncio.Event()

    def ask(self, claims: Iterable[ClaimKey]) -> None:
        """Have these read soon; returns at once."""
        self._asked |= dict.fromkeys(claims)
        while len(self._asked) > MOST_ASKED:
            del self._asked[next(iter(self._asked))]
        if self._asked:
            self._news.set()

    async def run(self) -> NoReturn:
        """Read until cancelled."""
        while True:
            await self._news.wait()
            self._news.clear()
            while self._asked:
                key = next(iter(self._asked))
                await self._look(key)
                self._asked.pop(key, None)

    async def _look(self, key: ClaimKey) -> None:
        try:
            await self._read(*key)
        except ApiError as error:
            # Its pod is refused until the watch brings it, and asked about again.
            logger.warning("not read claim=%s/%s: %s", *key, error)
            await asyncio.sleep(FAILED_SECONDS)
