"""The API server is asked for claims that a pod names and no watch has brought.

kube-scheduler knows a claim before it asks about its pod. Where the watch here does not bring it
soon, one read tells whether it is late, or the claim is gone; either way the world knows.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass
from typing import NoReturn, TypeAlias

from kube.api import ApiError, Done, Reconciler, Result

logger = logging.getLogger(__name__)

ClaimKey: TypeAlias = tuple[str, str]
"""Namespace and name."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LookupSettings:
    """How claims are read.

    Attributes:
        most_waiting: Claims that wait to be read; the watch has to bring those beyond it.
        failed_seconds: The pause after a read that failed: others may fail as well.
    """

    most_waiting: int = 1_000
    failed_seconds: float = 1.0


class ClaimLookups:
    """Claims to be read, one after the other, while `run` runs; each once for all requests."""

    def __init__(
        self,
        read: Callable[[str, str], Awaitable[object]],
        settings: LookupSettings = LookupSettings(),
    ) -> None:
        """`read` reads a claim; what it is, or that there is none, is known from then on."""
        self._read = read
        self._settings = settings
        self._queue: Reconciler[ClaimKey] = Reconciler("claim-lookups", self._reconcile)

    def ask(self, claims: Iterable[ClaimKey]) -> None:
        """Have these read soon; returns at once."""
        for claim in claims:
            if len(self._queue) < self._settings.most_waiting:
                self._queue.add(claim)

    async def run(self) -> NoReturn:
        """Read until cancelled."""
        await self._queue.run()

    async def _reconcile(self, key: ClaimKey) -> Result:
        try:
            await self._read(*key)
        except ApiError as error:
            # Its pod is refused until the watch brings it, and asked about again.
            logger.warning("claim not read claim=%s/%s: %s", *key, error)
            return Done(pause=self._settings.failed_seconds)
        return Done()
