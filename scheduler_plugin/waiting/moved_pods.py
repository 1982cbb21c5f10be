"""The transitions of single pods: queued, admitted, backed off, and queued again.

`pod_states` lists them.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime

from scheduler_plugin.accounting.world import World
from scheduler_plugin.judging.gangs import could_come
from scheduler_plugin.judging.verdicts import Admitted, assume
from scheduler_plugin.objects.names import PodUid
from scheduler_plugin.objects.pods import PodView
from scheduler_plugin.waiting.away.away_pods import AwayPods
from scheduler_plugin.waiting.decisions import GateRemoval, LetGo, Retry
from scheduler_plugin.waiting.lines.lines import Line
from scheduler_plugin.waiting.lines.waiting_pods import WaitingPods
from scheduler_plugin.waiting.pod_states import PodState, state_of
from scheduler_plugin.waiting.untold_pods import UntoldPods


class MovedPods:
    """Carries out the transitions of one pod at a time. Moments are of the monotonic clock."""

    def __init__(
        self,
        world: World,
        places: tuple[WaitingPods, AwayPods, UntoldPods],
        find: Callable[[PodUid], PodView | None],
        moved_up: Callable[[Line], object],
    ) -> None:
        """Create.

        Args:
            world: The known objects.
            places: The collections of pods: queued, assumed or in backoff, and with conditions to
                write.
            find: Returns a waiting pod as it is to be judged, and None for any other.
            moved_up: Called with a class that has a new head.
        """
        self._world, self._moved_up = world, moved_up
        self._waiting, self._away, self._untold = places
        self._find = find

    def state(self, uid: PodUid) -> PodState:
        return state_of(uid, self._waiting, self._away)

    def note(self, uid: PodUid) -> None:
        """The pod was created, changed or deleted."""
        self._take(uid)
        self._waiting.note_group(uid)

    def _take(self, uid: PodUid) -> None:
        pod = self._find(uid)
        if pod is None:
            self._away.forget(uid)
        if uid in self._away:
            return
        self._waiting.note_pod(uid)
        line = self._waiting.line_of(uid)
        if line is not None and line.turns[0][-1] == uid:
            self._moved_up(line)
        is_told = pod is not None and line is not None and line.reason in ("", pod.admission)
        if pod is not None and pod.is_gated and not is_told:
            self._untold.note((uid,))

    def let_go(self, pod: PodView, admitted: Admitted, now: datetime, moment: float) -> LetGo:
        """Admit the pod: assume that it is bound. The result says what is to be written."""
        assume(pod, admitted, self._world, now)
        self._away.go(pod, moment)
        self._waiting.leave(pod.uid)
        self._untold.drop(pod.uid)
        self.wake_claims_of(pod.uid)
        kind = GateRemoval if pod.is_gated else Retry
        return kind(namespace=pod.namespace, name=pod.name, uid=pod.uid, queue=admitted.queue)

    def tried(self, uid: PodUid, moment: float) -> None:
        """kube-scheduler tried a pod without a gate: the decision about it has ended."""
        if self._away.going.drop(uid) and self._find(uid) is not None:
            self._away.rest(uid, moment)
        elif uid not in self._waiting or self._find(uid) is None:
            self.note(uid)

    def failed(self, uid: PodUid, moment: float, *, is_servers: bool = False) -> bool:
        """The write for an admitted pod failed: it is forgotten, and backs off.

        Returns False for a pod that is not assumed any more.
        """
        if not self._away.going.drop(uid):
            return False
        self._forget(uid)
        self._away.rest(uid, moment, is_servers=is_servers)
        return True

    def come_back(self, moment: float) -> bool:
        """Take back pods whose assumption or back-off has ended.

        Returns whether an assumption was forgotten.
        """
        has_room = False
        for uid in self._away.going.take(moment):
            pod = self._find(uid)
            if pod is not None:
                self._forget(uid)  # It may not have lapsed where the wall clock was set back.
                has_room = True
            if pod is not None and not pod.is_gated:
                self._away.rest(uid, moment)  # It was not tried: perhaps no node has room for it.
            else:
                self.note(uid)
        for uid in self._away.resting.take(moment):
            self.note(uid)
        return has_room

    def may_come(self, pod: PodView) -> PodView | None:
        """A pod as it would join its gang: it is queued, or it does not wait and could be bound."""
        match self.state(pod.uid):
            case PodState.QUEUED | PodState.INADMISSIBLE:
                return self._find(pod.uid)
            case PodState.NOT_WAITING:
                return pod if could_come(pod, self._world) else None
            case PodState.NOT_READY | PodState.ASSUMED | PodState.BACKOFF:
                return None

    def wake_claims_of(self, uid: PodUid) -> None:
        """The assumption of a pod changed: requeue the pods that share its claims or its gang."""
        facts = self._world.facts
        for claim in facts.claims_of(pod) if (pod := facts.pod(uid)) is not None else ():
            self._waiting.note_claim(claim.uid)
        self._waiting.note_group(uid)

    def _forget(self, uid: PodUid) -> None:
        self._world.assumptions.forget(uid)
        self.wake_claims_of(uid)
