"""The verdict on an equivalence class: on its head, or on the whole gang of that pod."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import datetime
from typing import TypeAlias

from scheduler_plugin.accounting.world import World
from scheduler_plugin.judging.gangs import AsCandidate, GangAdmitted, GangRefused, try_gang
from scheduler_plugin.judging.pod_order import needed_together
from scheduler_plugin.judging.verdicts import Admitted, Refused, assume, judge
from scheduler_plugin.objects.names import PodUid, Reason
from scheduler_plugin.objects.pods import PodView
from scheduler_plugin.waiting.admissions import WaitReason
from scheduler_plugin.waiting.blocked_classes import BlockedClasses
from scheduler_plugin.waiting.classes.inadmissible import (
    CEILINGS,
    LimitingQuota,
    gang_need,
    gang_shortfall,
    limiting_quota_of,
)
from scheduler_plugin.waiting.classes.pod_classes import EquivalenceClass
from scheduler_plugin.waiting.classes.polled import PolledClasses
from scheduler_plugin.waiting.classes.waiting_pods import WaitingPods

TooFew = Callable[[Sequence[PodView]], str]
"""Why there are too few devices for the pods of a gang; "" where there may be enough."""

AdmittedPods: TypeAlias = tuple[tuple[PodView, Admitted], ...]
"""The pods to admit now, each with its verdict, which counts the pods before it."""


class ClassVerdicts:
    """Judges classes, and records why a class is blocked."""

    def __init__(
        self,
        world: World,
        pod_classes: tuple[WaitingPods, BlockedClasses, PolledClasses],
        find: Callable[[PodUid], PodView | None],
        as_candidate: AsCandidate,
        too_few: TooFew,
    ) -> None:
        """Create.

        Args:
            world: The known objects.
            pod_classes: All classes, the blocked ones, and those that are polled.
            find: Returns a waiting pod as it is to be judged, and None for any other.
            as_candidate: The same for a pod of a PodGroup, whether it waits or not.
            too_few: Says whether a gang lacks devices.
        """
        self._world = world
        self._waiting, self._blocked, self._polled = pod_classes
        self._find, self._as_candidate, self._too_few = find, as_candidate, too_few

    def judge(self, pod_class: EquivalenceClass, now: datetime) -> AdmittedPods:
        """The pods of a class to admit; none where the class is blocked."""
        pod = self._find(self._waiting.next_pod(pod_class))
        assert pod is not None, "a pod that waits is known"
        judge_as = self._together if pod_class.class_key.gang else self._alone
        found = judge_as(pod_class, pod, now)
        if found:
            self._waiting.requeue((pod_class.class_key,))
        return found

    def _alone(self, pod_class: EquivalenceClass, pod: PodView, now: datetime) -> AdmittedPods:
        verdict = judge(pod, self._world.facts.claims_of(pod), self._world)
        if isinstance(verdict, Refused):
            limiting_quota = limiting_quota_of(pod, verdict, self._world)
            if verdict.reason is Reason.BORROWING_BACKOFF or _fits_none(verdict, limiting_quota):
                self._polled.add(pod_class.class_key)
            self._blocked.block(pod_class, verdict, limiting_quota)
            self._blocked.update_aging(
                pod_class, pod, needed_together((pod,), self._world.facts), now
            )
            return ()
        is_held = pod.uid in self._world.assumptions.holds
        if not is_held and self._blocked.leaves_room(pod_class, (verdict,), now):
            return ()
        return ((pod, verdict),)

    def _together(self, pod_class: EquivalenceClass, pod: PodView, now: datetime) -> AdmittedPods:
        """The same for a whole gang. Some of its pods may be in no class."""
        trial = self._world.trial()
        found = try_gang(pod, trial, self._as_candidate)
        lacks = gang_shortfall(found, trial)
        if isinstance(found, GangRefused):
            self._blocked.block(pod_class, found.refused, gang_need(lacks, self._world))
            self._blocked.update_aging(
                pod_class, pod, needed_together(found.pods, self._world.facts), now
            )
            return ()
        if not self._is_held(found) and self._is_blocked(pod_class, found, now):
            return ()
        in_line = tuple(each for each in found.admitted if each[0].uid in self._waiting)
        for each, verdict in found.admitted:
            if each.uid not in self._waiting:
                assume(each, verdict, self._world, now)
        return in_line

    def _is_held(self, found: GangAdmitted) -> bool:
        return any(each.uid in self._world.assumptions.holds for each, _ in found.admitted)

    def _is_blocked(self, pod_class: EquivalenceClass, found: GangAdmitted, now: datetime) -> bool:
        """Whether a gang that fits waits: for devices, or because it leaves room."""
        if why := self._too_few([each for each, _ in found.admitted]):
            self._polled.add(pod_class.class_key)
            self._blocked.wait(pod_class, WaitReason.NO_DEVICE_FREE, why)
            return True
        return self._blocked.leaves_room(pod_class, (verdict for _, verdict in found.admitted), now)


def _fits_none(refused: Refused, limiting_quota: tuple[LimitingQuota, int] | None) -> bool:
    """Whether alternatives do not fit at different ceilings: no single one says when one fits."""
    return limiting_quota is None and refused.reason in CEILINGS
