"""Refused pods, and when each is judged again: nothing may tell kube-scheduler to try it again.

kube-scheduler tries a pod because something changed, a pod ended, say. It may hear of that before
this process does: then the refusal is out of date when it is made. And it looks at no Queues, and
at no decisions that lapse. So refused pods are judged again: soon, and then less and less often.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from heapq import heappop, heappush

from scheduler_plugin.names import PodUid

FIRST_REST = timedelta(seconds=0.1)
"""Between a refusal and the first look: about what a watch takes to bring what happened."""

LONGEST_REST = timedelta(seconds=60)
GROWTH = 3
"""How many times as long as the last one each rest is."""

MOST = 10_000
"""Pods; of more, those that were refused the longest ago are left to kube-scheduler."""


class Refusals:
    """The pods that were refused when kube-scheduler asked about them last."""

    def __init__(self) -> None:
        # Each pod's rest and next look, in the order of refusals.
        self._pods: dict[PodUid, tuple[timedelta, datetime]] = {}
        self._looks: list[tuple[datetime, PodUid]] = []
        self._now = datetime.min.replace(tzinfo=UTC)

    def __len__(self) -> int:
        return len(self._pods)

    def add(self, pod: PodUid, now: datetime) -> None:
        """A pod was refused; a second time, it is looked at soon again."""
        self._pods.pop(pod, None)
        self._plan(pod, FIRST_REST, now)
        if len(self._pods) > MOST:
            del self._pods[next(iter(self._pods))]

    def forget(self, pod: PodUid) -> None:
        """It was admitted, told to be tried again, or is gone."""
        self._pods.pop(pod, None)

    def due(self, now: datetime) -> tuple[PodUid, ...]:
        """The pods to be judged now, the longest due first; each is due again after its rest."""
        if now < self._now:
            self._plan_anew(now)
        self._now = now
        found = []
        while self._looks and self._looks[0][0] <= now:
            at, pod = heappop(self._looks)
            rest, planned = self._pods.get(pod, (FIRST_REST, None))
            if planned == at:
                found.append(pod)
                self._plan(pod, min(LONGEST_REST, GROWTH * rest), now)
        return tuple(found)

    def _plan_anew(self, now: datetime) -> None:
        """The clock was set back: all looks would be late by as much."""
        self._looks.clear()
        for pod, (rest, _) in list(self._pods.items()):
            self._plan(pod, rest, now)

    def _plan(self, pod: PodUid, rest: timedelta, now: datetime) -> None:
        self._pods[pod] = (rest, now + rest)
        heappush(self._looks, (now + rest, pod))
