"""Admission of waiting pods in a fair order: pods at the gate, and refused pods without a gate.

    changes ──► classes requeued ──► head of each class judged, fairest queue first
                                        ├─ admitted ──► assumed, to be written
                                        └─ refused  ──► the class waits: for its limiting quota
                                                        to have room, or for a change

An admitted pod is assumed from then on, as after Filter, so that no more pods are admitted than
fit. The gate of a pod at the gate is removed. No gate can be added again: when the assumption
lapses, kube-scheduler tries the pod. A condition on a pod without a gate makes kube-scheduler try
it again. If it does not, the pod keeps its room for `TRIED_SECONDS` and then backs off. A pod that
does not fit does not block smaller pods, since devices may be in use without a time limit.

The cost of a decision grows with the number of requeued classes, not of waiting pods: only the
head of a class is judged, and a class that a quota refused waits until that has room. All changes
are processed before the next class is judged.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Container, Iterator
from datetime import datetime, timedelta
from functools import partial
from itertools import chain, islice

from scheduler_plugin.accounting.world import World
from scheduler_plugin.accounting.world_changes import (
    ClaimChanged,
    GroupChanged,
    NamespaceChanged,
    OtherChanged,
    PodChanged,
    QueueChanged,
    WorldChange,
)
from scheduler_plugin.judging.verdicts import Admitted
from scheduler_plugin.objects.names import PodUid
from scheduler_plugin.objects.pods import PodView
from scheduler_plugin.waiting.admissions import Admission, Position, WaitingPod
from scheduler_plugin.waiting.blocked_classes import BlockedClasses
from scheduler_plugin.waiting.class_verdicts import ClassVerdicts, TooFew
from scheduler_plugin.waiting.classes.inadmissible import InadmissibleClasses, LimitingQuota
from scheduler_plugin.waiting.classes.pod_classes import ClassKey, EquivalenceClass
from scheduler_plugin.waiting.classes.polled import PolledClasses
from scheduler_plugin.waiting.classes.refused_pods import as_it_waits
from scheduler_plugin.waiting.classes.waiting_pods import WaitingPods
from scheduler_plugin.waiting.deferred.deferred_pods import DeferredPods
from scheduler_plugin.waiting.order.aging import AgedPods
from scheduler_plugin.waiting.order.fair_order import FairOrder
from scheduler_plugin.waiting.pending_conditions import PendingConditions
from scheduler_plugin.waiting.pod_queries import query_pod
from scheduler_plugin.waiting.pod_states import PodState
from scheduler_plugin.waiting.pod_transitions import PodTransitions

RECHECK_SECONDS = 60.0
"""How often each class is judged anew without a change that concerns it."""

LOOK_SECONDS = 0.25
"""How long classes are judged before the changes of that time are processed."""

PATIENCE = 20
"""The longest time to process them, as a multiple of `LOOK_SECONDS`; thousands of classes need
that."""


class GateKeeper:
    """Decides about the waiting pods of one world. Pass it each change after the world took it.

    Moments are seconds of the monotonic clock.
    """

    def __init__(
        self,
        world: World,
        refused: Container[PodUid] = (),
        *,
        look_seconds: float = LOOK_SECONDS,
        first_period: timedelta = timedelta.max,
        too_few: TooFew = lambda _: "",
    ) -> None:
        """Create a keeper that has decided nothing.

        Args:
            world: The known objects.
            refused: The waiting pods without a gate; call `tried` when one comes or goes.
            look_seconds: How long classes are judged before changes are processed.
            first_period: The waiting time until room is left for a pod for the first time.
            too_few: Says whether a gang lacks devices.
        """
        self._world = world
        self._as_it_waits = partial(as_it_waits, world, refused)
        self._look_seconds = look_seconds
        self._waiting = WaitingPods(world, self._as_it_waits)
        self._inadmissible = InadmissibleClasses()
        self._order = FairOrder(self._waiting.pod_classes, world)
        # Pods, classes and limiting quotas to process; and whether there may be more.
        self._unseen = OrderedDict[PodUid, None]((pod.uid, None) for pod in world.facts.pods())
        self._rechecked, self._stale = list[ClassKey](), list[ClassKey]()
        self._limiting_quotas: list[LimitingQuota] = []
        self._again, self._next_look = False, float("-inf")
        self._has_judged, self.deferred = False, DeferredPods()
        self.pending_conditions = PendingConditions(world, self._waiting)
        places = (self._waiting, self.deferred, self.pending_conditions)
        self._transitions = PodTransitions(
            world, places, self._as_it_waits, lambda pod_class: self._order.head_changed(pod_class)
        )
        aged = AgedPods(world, self._waiting.pod_classes, first_period)
        self._blocked = BlockedClasses(
            self._waiting, self.pending_conditions, self._inadmissible, aged
        )
        self._recheck_at, self._polled = float("-inf"), PolledClasses()
        pod_classes = (self._waiting, self._blocked, self._polled)
        self._judged = ClassVerdicts(
            world, pod_classes, self._as_it_waits, self._transitions.as_candidate, too_few
        )
        self.waiting_pods = self._waiting.counts

    def __len__(self) -> int:
        return len(self._waiting)

    def __iter__(self) -> Iterator[PodUid]:
        return iter(self._waiting)

    def note(self, change: WorldChange) -> None:
        """Take a change. A change that concerns no waiting pod costs little.

        A claim counts as changed when another decision assumes it, or assumes it no longer.
        """
        self._again = True
        facts = self._world.facts
        match change:
            case PodChanged(uid):
                self._transitions.note(uid)
            case ClaimChanged(uid):
                self._waiting.note_claim(uid)
                self._polled.poll_now()
            case QueueChanged():
                self._stale = list(self._waiting.pod_classes)
                self._order = FairOrder(self._waiting.pod_classes, self._world)
            case NamespaceChanged(name):
                self._unseen |= dict.fromkeys(facts.pods_in_namespace(name))
            case GroupChanged(namespace, name):
                self._unseen |= dict.fromkeys(facts.pods_in_group((namespace, name)))
            case OtherChanged():
                self._unseen |= dict.fromkeys(self._waiting)

    def look_again(self) -> None:
        """The assumptions changed: there may be room for any pod."""
        self._again = True

    def tried(self, uid: PodUid, moment: float) -> None:
        """kube-scheduler tried a pod without a gate: the decision about it has ended."""
        self._again = True
        self._transitions.tried(uid, moment)

    def stays_assumed(self, uid: PodUid, moment: float) -> bool:
        """Whether the pod is admitted, and stays assumed until `moment`."""
        return self.deferred.stays_assumed(uid, moment)

    def failed(self, uid: PodUid, moment: float, *, is_servers: bool = False) -> None:
        """The write for an admitted pod failed: the pod is forgotten, and backs off."""
        self._again |= self._transitions.failed(uid, moment, is_servers=is_servers)

    @property
    def has_more(self) -> bool:
        """Whether the last decision stopped before its end: call `decide` again."""
        return self._again or self.is_busy

    @property
    def is_busy(self) -> bool:
        """Whether a pod, class or limiting quota is known to need processing."""
        found = self._unseen or self._rechecked or self._stale or self._limiting_quotas
        return bool(found or self._waiting.requeued or self._order)

    @property
    def is_reviewing(self) -> bool:
        """Whether pods are still to be processed after a change of another object."""
        return bool(self._unseen)

    def next_look(self) -> float | None:
        """The moment to decide again without a change; None where no pod waits."""
        back, soon = self.deferred.next_moment(), self._polled.next_moment
        if not len(self._waiting):
            return back
        ours = self._recheck_at if soon is None else soon
        return ours if back is None else min(back, ours)

    def decide(
        self, now: datetime, moment: float, most: int | None = None
    ) -> tuple[Admission, ...]:
        """The pods to admit now, in order; each is assumed to be bound.

        Args:
            now: The wall-clock time.
            moment: The same moment on the monotonic clock.
            most: The largest number of steps, of about 0.1 ms each; None for all.
        """
        for pod in self._world.assumptions.expire(now):
            self._transitions.requeue_claims_of(pod)
            self._again = True
        self._again |= self._transitions.come_back(moment)
        self._again |= self._polled.are_due(moment)
        if moment >= self._recheck_at:
            self._recheck_at = moment + RECHECK_SECONDS
            self._rechecked = list(self._waiting.pod_classes)
        if not self.is_busy or (self._again and not self._order and moment >= self._next_look):
            self._look(moment)
        return tuple(chain.from_iterable(islice(self._steps(now, moment), most)))

    def _look(self, moment: float) -> None:
        """Begin to process the changes: quotas that have room by now, and a new order."""
        self._again = self._has_judged = False
        self._next_look = moment + PATIENCE * self._look_seconds
        self._limiting_quotas = self._inadmissible.limiting_quotas()
        self._waiting.requeue(self._polled.take(moment))
        self._stale += self._order.remaining()
        self._waiting.requeue_held()
        self._order = FairOrder(self._waiting.pod_classes, self._world)

    def _steps(self, now: datetime, moment: float) -> Iterator[tuple[Admission, ...]]:
        """Process the changes, then judge one class after another."""
        while True:
            if self._takes_in(now):
                yield ()
            elif self._again and (moment >= self._next_look or not self._order):
                self._look(moment)
            elif (pod_class := self._order.next()) is not None:
                if not self._has_judged:
                    self._has_judged = True
                    self._next_look = moment + self._look_seconds
                yield self._judge(pod_class, now, moment)
            else:
                self._next_look = float("-inf")
                return

    def _takes_in(self, now: datetime) -> bool:
        """Process one change; False where there is none."""
        if self._unseen:
            self._look_at_pod(self._unseen.popitem(last=False)[0])
        elif self._rechecked:
            self._recheck(self._rechecked.pop(), now)
        elif self._limiting_quotas:
            self._waiting.requeue(
                self._inadmissible.with_room(self._limiting_quotas.pop(), self._world)
            )
        elif self._stale:
            self._take_in(self._stale.pop())
        elif (class_key := self._waiting.next_requeued()) is not None:
            self._take_in(class_key)
        else:
            return False
        return True

    def _look_at_pod(self, uid: PodUid) -> None:
        if uid in self._waiting:
            self._waiting.review(uid)
            self._waiting.note_group(uid)
        else:
            self._transitions.note(uid)

    def _take_in(self, class_key: ClassKey) -> None:
        self._inadmissible.remove(class_key)
        if self._waiting.class_to_judge(class_key) is not None:
            self._order.add((class_key,))
        else:
            self._blocked.free(class_key)

    def _judge(
        self, pod_class: EquivalenceClass, now: datetime, moment: float
    ) -> tuple[Admission, ...]:
        admitted_pods = self._judged.judge(pod_class, now)
        return tuple(self._admit(pod, verdict, now, moment) for pod, verdict in admitted_pods)

    def _admit(self, pod: PodView, admitted: Admitted, now: datetime, moment: float) -> Admission:
        found = self._transitions.admit(pod, admitted, now, moment)
        self._order.charged({admitted.queue, *(claim.owner for claim in admitted.claims)})
        return found

    def _recheck(self, class_key: ClassKey, now: datetime) -> None:
        pod_class = self._waiting.pod_classes.get(class_key)
        first = self._as_it_waits(pod_class.sort_keys[0][-1]) if pod_class is not None else None
        if self._blocked.is_due(class_key, first, now):
            self._waiting.requeue((class_key,))

    def state(self, uid: PodUid) -> PodState:
        """The state of a pod; `TRANSITIONS` lists the transitions."""
        return self._transitions.state(uid)

    def place(self, uid: PodUid) -> Position | None:
        """A pod's position in its queue; None for a pod that is in no queue."""
        return self._waiting.place(uid)

    def short_of_room(self) -> list[PodUid]:
        """The pods of classes that a limit or a lack of devices refused; one for each gang."""
        return self._waiting.short_of_room()

    def waiting(self, namespace: str, name: str) -> WaitingPod | str:
        """The state of a waiting pod now; a sentence where the pod does not wait."""
        return query_pod((namespace, name), self._world, self._waiting, self._as_it_waits)
