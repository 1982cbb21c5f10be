"""A gate keeper that is watched: each move of a pod has to be one of the table."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime
from typing import Any

from scheduler_plugin.accounting.world_changes import WorldChange
from scheduler_plugin.objects.names import PodUid
from scheduler_plugin.waiting.admissions import Admission
from scheduler_plugin.waiting.gates import GateKeeper
from scheduler_plugin.waiting.pod_states import TRANSITIONS, PodState


class WatchedKeeper(GateKeeper):
    """Decides as any other; after each of its steps the states of all pods are compared."""

    __module__ = GateKeeper.__module__  # What it keeps is looked through as any other's.

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self._seen: dict[PodUid, PodState] = {}

    def note(self, change: WorldChange) -> None:
        super().note(change)
        self._check()

    def tried(self, uid: PodUid, moment: float) -> None:
        super().tried(uid, moment)
        self._check()

    def failed(self, uid: PodUid, moment: float, *, is_servers: bool = False) -> None:
        super().failed(uid, moment, is_servers=is_servers)
        self._check()

    def decide(
        self, now: datetime, moment: float, most: int | None = None
    ) -> tuple[Admission, ...]:
        found = super().decide(now, moment, most)
        self._check()
        return found

    def _steps(self, now: datetime, moment: float) -> Iterator[tuple[Admission, ...]]:
        self._check()  # Pods came back.
        for step in super()._steps(now, moment):
            self._check()
            yield step

    def _check(self) -> None:
        found = {
            uid: self.state(uid) for uid in {*self, *self.deferred.assumed, *self.deferred.backoff}
        }
        for uid in {*found, *self._seen}:
            before = self._seen.get(uid, PodState.NOT_WAITING)
            after = found.get(uid, PodState.NOT_WAITING)
            assert before is after or after in TRANSITIONS[before], (uid, before, after)
        self._seen = found
