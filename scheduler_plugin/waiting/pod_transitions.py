"""The transitions of single pods: queued, admitted, backed off, and queued again.

`pod_states` lists them.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime

from scheduler_plugin.accounting.world import World
from scheduler_plugin.judging.gangs import is_schedulable
from scheduler_plugin.judging.verdicts import Admitted, assume
from scheduler_plugin.objects.names import PodUid
from scheduler_plugin.objects.pods import PodView
from scheduler_plugin.waiting.admissions import Admission, GateRemoval, Retry
from scheduler_plugin.waiting.classes.pod_classes import EquivalenceClass
from scheduler_plugin.waiting.classes.waiting_pods import WaitingPods
from scheduler_plugin.waiting.deferred.deferred_pods import DeferredPods
from scheduler_plugin.waiting.pending_conditions import PendingConditions
from scheduler_plugin.waiting.pod_states import PodState, state_of


class PodTransitions:
    """Carries out the transitions of one pod at a time. Moments are of the monotonic clock."""

    def __init__(
        self,
        world: World,
        places: tuple[WaitingPods, DeferredPods, PendingConditions],
        find: Callable[[PodUid], PodView | None],
        head_changed: Callable[[EquivalenceClass], object],
    ) -> None:
        """Create.

        Args:
            world: The known objects.
            places: The collections of pods: queued, assumed or in backoff, and with conditions to
                write.
            find: Returns a waiting pod as it is to be judged, and None for any other.
            head_changed: Called with a class that has a new head.
        """
        self._world, self._head_changed = world, head_changed
        self._waiting, self._deferred, self._pending_conditions = places
        self._find = find

    def state(self, uid: PodUid) -> PodState:
        return state_of(uid, self._waiting, self._deferred)

    def note(self, uid: PodUid) -> None:
        """The pod was created, changed or deleted."""
        self._take(uid)
        self._waiting.note_group(uid)

    def _take(self, uid: PodUid) -> None:
        pod = self._find(uid)
        if pod is None:
            self._deferred.forget(uid)
        if uid in self._deferred:
            return
        self._waiting.note_pod(uid)
        pod_class = self._waiting.class_of(uid)
        if pod_class is not None and pod_class.sort_keys[0][-1] == uid:
            self._head_changed(pod_class)
        is_reported = (
            pod is not None and pod_class is not None and pod_class.reason in ("", pod.admission)
        )
        if pod is not None and pod.is_gated and not is_reported:
            self._pending_conditions.note((uid,))

    def admit(self, pod: PodView, admitted: Admitted, now: datetime, moment: float) -> Admission:
        """Admit the pod: assume that it is bound. The result says what is to be written."""
        assume(pod, admitted, self._world, now)
        self._deferred.assume(pod, moment)
        self._waiting.leave(pod.uid)
        self._pending_conditions.drop(pod.uid)
        self.requeue_claims_of(pod.uid)
        kind = GateRemoval if pod.is_gated else Retry
        return kind(namespace=pod.namespace, name=pod.name, uid=pod.uid, queue=admitted.queue)

    def tried(self, uid: PodUid, moment: float) -> None:
        """kube-scheduler tried a pod without a gate: the decision about it has ended."""
        if self._deferred.assumed.drop(uid) and self._find(uid) is not None:
            self._deferred.back_off(uid, moment)
        elif uid not in self._waiting or self._find(uid) is None:
            self.note(uid)

    def failed(self, uid: PodUid, moment: float, *, is_servers: bool = False) -> bool:
        """The write for an admitted pod failed: it is forgotten, and backs off.

        Returns False for a pod that is not assumed any more.
        """
        if not self._deferred.assumed.drop(uid):
            return False
        self._forget(uid)
        self._deferred.back_off(uid, moment, is_servers=is_servers)
        return True

    def come_back(self, moment: float) -> bool:
        """Take back pods whose assumption or back-off has ended.

        Returns whether an assumption was forgotten.
        """
        has_room = False
        for uid in self._deferred.assumed.take(moment):
            pod = self._find(uid)
            if pod is not None:
                self._forget(uid)  # It may not have lapsed where the wall clock was set back.
                has_room = True
            if pod is not None and not pod.is_gated:
                self._deferred.back_off(
                    uid, moment
                )  # It was not tried: perhaps no node has room for it.
            else:
                self.note(uid)
        for uid in self._deferred.backoff.take(moment):
            self.note(uid)
        return has_room

    def as_candidate(self, pod: PodView) -> PodView | None:
        """A pod as it would join its gang: it is queued, or it does not wait and could be bound."""
        match self.state(pod.uid):
            case PodState.QUEUED | PodState.INADMISSIBLE:
                return self._find(pod.uid)
            case PodState.NOT_WAITING:
                return pod if is_schedulable(pod, self._world) else None
            case PodState.NOT_READY | PodState.ASSUMED | PodState.BACKOFF:
                return None

    def requeue_claims_of(self, uid: PodUid) -> None:
        """The assumption of a pod changed: requeue the pods that share its claims or its gang."""
        facts = self._world.facts
        for claim in facts.claims_of(pod) if (pod := facts.pod(uid)) is not None else ():
            self._waiting.note_claim(claim.uid)
        self._waiting.note_group(uid)

    def _forget(self, uid: PodUid) -> None:
        self._world.assumptions.forget(uid)
        self.requeue_claims_of(uid)
