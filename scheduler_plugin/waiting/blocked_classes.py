"""Blocked classes: the head does not fit, or leaves room for a pod that has waited longer."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime

from scheduler_plugin.judging.verdicts import Admitted, Refused
from scheduler_plugin.objects.amounts import Charges
from scheduler_plugin.objects.pods import PodView
from scheduler_plugin.waiting.admissions import WaitReason
from scheduler_plugin.waiting.classes.inadmissible import InadmissibleClasses, LimitingQuota
from scheduler_plugin.waiting.classes.pod_classes import ClassKey, EquivalenceClass, claim_uids
from scheduler_plugin.waiting.classes.waiting_pods import WaitingPods
from scheduler_plugin.waiting.order.aging import Aged, AgedPods
from scheduler_plugin.waiting.pending_conditions import PendingConditions


class BlockedClasses:
    """Records why classes are blocked, and requeues those for which that ends."""

    def __init__(
        self,
        waiting: WaitingPods,
        pending_conditions: PendingConditions,
        inadmissible: InadmissibleClasses,
        aged: AgedPods,
    ) -> None:
        self._waiting = waiting
        self._pending_conditions = pending_conditions
        self._inadmissible = inadmissible
        self._aged = aged

    def block(
        self,
        pod_class: EquivalenceClass,
        refused: Refused,
        limiting_quota: tuple[LimitingQuota, int] | None,
    ) -> None:
        """The head was refused. Without a limiting quota the class waits for a change."""
        if limiting_quota is not None:
            self._inadmissible.put(pod_class.class_key, *limiting_quota)
        self.wait(pod_class, refused.reason, refused.sentence)

    def wait(self, pod_class: EquivalenceClass, reason: str, sentence: str) -> None:
        """The head is not admitted, for a reason that no verdict has."""
        pod_class.refusal = sentence
        self._say(pod_class, reason)

    def update_aging(
        self, pod_class: EquivalenceClass, pod: PodView, needs: Charges, now: datetime
    ) -> None:
        """Other classes leave room for the head of this one from now on, or no longer."""
        if self._inadmissible.has(pod_class.class_key):
            aged = Aged(pod_class.class_key, pod_class.sort_keys[0], needs, str(pod), pod.created)
            self._waiting.requeue(self._aged.put(aged, now))
        else:
            self._waiting.requeue(self._aged.drop(pod_class.class_key))

    def leaves_room(
        self, pod_class: EquivalenceClass, admitted: Iterable[Admitted], now: datetime
    ) -> bool:
        """Whether the head waits although it fits. If not, no class leaves room for it any more."""
        aged = self._aged.leave_room(pod_class, admitted, now)
        if aged is not None:
            self._say(pod_class, WaitReason.ROOM_IS_LEFT, str(aged))
            return True
        pod_class.yields_to = ""
        self.free(pod_class.class_key)
        return False

    def free(self, class_key: ClassKey) -> None:
        """No class leaves room for this one any more."""
        self._waiting.requeue(self._aged.drop(class_key))

    def is_due(self, class_key: ClassKey, first: PodView | None, now: datetime) -> bool:
        """Whether a class may fit without a change: by lapsed assumptions, or by its age."""
        hangs_on_others = class_key.gang or any(claim_uids(class_key))
        if hangs_on_others or not self._inadmissible.has(class_key):
            return True
        pod_class = self._waiting.pod_classes.get(class_key)
        if pod_class is None or first is None:
            return False
        return self._aged.period_changed(pod_class, first.created, now)

    def _say(self, pod_class: EquivalenceClass, reason: str, yields_to: str = "") -> None:
        if (pod_class.reason, pod_class.yields_to) != (reason, yields_to):
            pod_class.reason, pod_class.yields_to = reason, yields_to
            self._pending_conditions.note(turn[-1] for turn in pod_class.sort_keys)
