"""Reads claims from the API server that a pod names and no watch has brought.

kube-scheduler knows a claim before it calls for the claim's pod. If the watch here does not bring
the claim soon, one read tells whether the watch is late or the claim is deleted.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass
from typing import NoReturn, TypeAlias

from kube.calls.api import ApiError
from kube.reconciling.api import Done, Reconciler, Result

logger = logging.getLogger(__name__)

ClaimKey: TypeAlias = tuple[str, str]
"""Namespace and name."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LookupSettings:
    """How claims are read.

    Attributes:
        most_waiting: The most claims that are queued; the watch must bring all others.
        failed_seconds: The pause after a failed read, since other reads may fail as well.
    """

    most_waiting: int = 1_000
    failed_seconds: float = 1.0


class ClaimLookups:
    """Reads queued claims one after the other while `run` runs; each claim is queued once."""

    def __init__(
        self,
        read: Callable[[str, str], Awaitable[object]],
        settings: LookupSettings = LookupSettings(),
    ) -> None:
        """`read` reads a claim by namespace and name, and enters the result into the world."""
        self._read = read
        self._settings = settings
        self._queue: Reconciler[ClaimKey] = Reconciler("claim-lookups", self._reconcile)

    def add(self, claims: Iterable[ClaimKey]) -> None:
        """Queue claims to be read soon; returns at once."""
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
            # The claim's pod is refused until the watch brings the claim; then it is tried again.
            logger.warning("claim not read claim=%s/%s: %s", *key, error)
            return Done(pause=self._settings.failed_seconds)
        return Done()
