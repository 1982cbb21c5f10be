"""The waiting pods with their classes, and the classes to requeue after a change.

The cost of a change grows with what it concerns: for a pod its claims, for a claim the classes of
the pods that reference it, for a namespace or a PodGroup its pods. A change on which all classes
may depend (of a DeviceClass, for example) makes all pods be reviewed, some at a time. Until its
review a pod stays in its class. Any change of one pod of a gang (created, ready to be judged,
admitted, bound, ended) requeues the gang.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import TypeAlias

from scheduler_plugin.accounting.world_views import WorldView
from scheduler_plugin.judging.gangs import is_of_gang
from scheduler_plugin.judging.pod_order import SortKey, asked, sort_key
from scheduler_plugin.objects.names import ClaimUid, PodUid, QueueName, Reason
from scheduler_plugin.objects.pods import PodView
from scheduler_plugin.waiting.admissions import Position, WaitReason
from scheduler_plugin.waiting.classes.claim_names import ClaimKey, NamedClaims
from scheduler_plugin.waiting.classes.pod_classes import (
    ClassKey,
    EquivalenceClass,
    claim_uids,
    class_key_of,
)
from scheduler_plugin.waiting.classes.ready_pods import is_ready

GroupKey: TypeAlias = tuple[str, str]
"""Namespace and name of a PodGroup."""


@dataclass(frozen=True, slots=True)
class _Member:
    """A waiting pod. A pod without a class cannot be judged yet."""

    turn: SortKey
    class_key: ClassKey | None
    claims: tuple[ClaimKey, ...]


class WaitingPods:
    """The classes with their pods, and the pods that cannot be judged yet.

    Attributes:
        pod_classes: The classes, by key; none is empty.
        requeued: The requeued classes: created, changed or deleted, or a change may concern them.
        reason_changed: Pods whose reason to wait may have changed.
    """

    def __init__(self, world: WorldView, find: Callable[[PodUid], PodView | None]) -> None:
        """`find` returns a waiting pod as it is to be judged, and None for any other."""
        self._world = world
        self._find = find
        self.pod_classes: dict[ClassKey, EquivalenceClass] = {}
        self.requeued: dict[ClassKey, None] = {}
        self.reason_changed: dict[PodUid, None] = {}
        self._members: dict[PodUid, _Member] = {}
        self._claims = NamedClaims(world)
        self._classes_of: dict[ClaimUid, dict[ClassKey, None]] = {}
        self._revision = world.assumptions.holds.revision
        # The number of classes that are gangs, and the PodGroup of each pod of a gang.
        self._gangs = 0
        self._groups: dict[PodUid, GroupKey] = {}

    def __len__(self) -> int:
        return len(self._members)

    def __contains__(self, pod: PodUid) -> bool:
        return pod in self._members

    def __iter__(self) -> Iterator[PodUid]:
        return iter(self._members)

    def class_of(self, pod: PodUid) -> EquivalenceClass | None:
        """The class of a pod; None for a pod that does not wait or cannot be judged yet."""
        member = self._members.get(pod)
        return self.pod_classes[member.class_key] if member and member.class_key else None

    def place(self, uid: PodUid) -> Position | None:
        """A pod's position in its queue; None for a pod that is in no class."""
        member = self._members.get(uid)
        if member is None or member.class_key is None:
            return None
        queue = member.class_key.queue
        pod_classes = [
            pod_class
            for pod_class in self.pod_classes.values()
            if pod_class.class_key.queue == queue
        ]
        ahead = sum(pod_class.ahead_of(member.turn) for pod_class in pod_classes)
        return Position(
            queue, ahead + 1, sum(len(pod_class.sort_keys) for pod_class in pod_classes)
        )

    def counts(self) -> Counter[QueueName]:
        """The number of queued pods, by queue."""
        found: Counter[QueueName] = Counter()
        for class_key, pod_class in self.pod_classes.items():
            found[class_key.queue] += len(pod_class.sort_keys)
        return found

    def short_of_room(self) -> list[PodUid]:
        """The pods of classes that lack room or devices; for a gang only its head."""
        return [
            turn[-1]
            for class_key, pod_class in self.pod_classes.items()
            if pod_class.reason in (Reason.OVER_LIMIT, WaitReason.NO_DEVICE_FREE)
            for turn in (pod_class.sort_keys[:1] if class_key.gang else pod_class.sort_keys)
        ]

    def requeue_held(self) -> None:
        """Requeue the classes of pods for which something is held.

        Their limiting quota counts what is held as used. When holds changed, the classes that wait
        for held devices are requeued as well.
        """
        revision = self._world.assumptions.holds.revision
        if revision != self._revision:
            self._revision = revision
            pod_classes = self.pod_classes.items()
            self.requeue(
                s for s, pod_class in pod_classes if pod_class.reason == Reason.DEVICE_HELD
            )
        for hold in self._world.assumptions.holds:
            if (pod_class := self.class_of(hold.pod)) is not None:
                self.requeued[pod_class.class_key] = None

    def next_pod(self, pod_class: EquivalenceClass) -> PodUid:
        """The pod of a class to judge: one for which room is held, else the head."""
        held = (hold.pod for hold in self._world.assumptions.holds)
        mine = (uid for uid in held if self.class_of(uid) is pod_class)
        return next(mine, pod_class.sort_keys[0][-1])

    # Changes.

    def note_pod(self, uid: PodUid) -> None:
        """A pod that may use devices was created, changed or deleted."""
        waiting, pod = self._find(uid), self._world.facts.pod(uid)
        if waiting is not None:
            self._enter(waiting)
        elif uid in self._members:
            self.leave(uid)
        elif pod is not None:
            self._look_at_neighbours(uid, _keys(pod))
        self.requeue_users(self._world.facts.claims_consumed_by(uid))

    def note_group(self, uid: PodUid) -> None:
        """A pod of a gang may have been created, changed, deleted, or decided about."""
        pod, before = self._world.facts.pod(uid), self._groups.pop(uid, None)
        key = before
        if pod is not None and is_of_gang(pod, self._world.facts):
            key = self._groups[uid] = (pod.namespace, pod.group)
        if key is not None:
            self._requeue_gangs(self._world.facts.pods_in_group(key))

    def note_claim(self, uid: ClaimUid) -> None:
        """A claim was created, changed or deleted, or a decision uses it."""
        claim = self._world.facts.claim(uid)
        key = claim.key if claim is not None else self._claims.key_of(uid)
        if key is None or not (pods := self._claims.pods(key)):
            return
        if self._claims.learn(key) or len(pods) == 1:
            for pod in list(pods):
                self._place(pod)
            # A cost that is known by now changes no class key.
            found = (self.class_of(pod) for pod in pods)
            self.requeue(c.class_key for c in found if c and c.reason == Reason.NOT_KNOWN_YET)
        self.requeue_users((uid,))

    def review(self, uid: PodUid) -> None:
        """Another object changed on which a pod's class or verdict may depend."""
        self._place(uid)
        pod_class = self.class_of(uid)
        if pod_class is not None:
            self.requeued[pod_class.class_key] = None

    def class_to_judge(self, class_key: ClassKey) -> EquivalenceClass | None:
        """A class with the present requests of its pods; None where it is gone."""
        pod_class = self.pod_classes.get(class_key)
        first = self._find(pod_class.sort_keys[0][-1]) if pod_class is not None else None
        if pod_class is not None and first is not None:
            pod_class.requests = asked(first, self._world.facts)
        return pod_class

    def next_requeued(self) -> ClassKey | None:
        """Remove and return a requeued class; it may be gone."""
        class_key = next(iter(self.requeued), None)
        if class_key is not None:
            del self.requeued[class_key]
        return class_key

    def requeue(self, class_keys: Iterable[ClassKey]) -> None:
        """Requeue these classes."""
        self.requeued |= dict.fromkeys(class_keys)

    def requeue_users(self, claims: Iterable[ClaimUid]) -> None:
        """Requeue the classes that use these claims: a change that no class key shows."""
        for uid in claims:
            self.requeued |= self._classes_of.get(uid, {})
            if self._gangs and (key := self._claims.key_of(uid)) is not None:
                self._requeue_gangs(self._claims.pods(key))

    def _requeue_gangs(self, pods: Iterable[PodUid]) -> None:
        """Requeue the gangs of these pods."""
        found = (self._members.get(pod) for pod in pods)
        class_keys = (member.class_key for member in found if member and member.class_key)
        self.requeue(class_key for class_key in class_keys if class_key.gang)

    # Members.

    def _enter(self, pod: PodView) -> None:
        claims = _keys(pod)
        before = self._members.get(pod.uid)
        if before is not None and before.claims == claims:
            self._place(pod.uid)
            return
        self.leave(pod.uid)
        self._members[pod.uid] = _Member(sort_key(pod), None, claims)
        self.reason_changed[pod.uid] = None
        self._claims.add(pod.uid, claims)
        self._place(pod.uid)
        self._look_at_neighbours(pod.uid, claims)

    def leave(self, uid: PodUid) -> None:
        """Remove a pod, if it is here."""
        member = self._members.pop(uid, None)
        self.reason_changed.pop(uid, None)
        if member is None:
            return
        self._quit(member)
        self._claims.remove(uid, member.claims)
        self._look_at_neighbours(uid, member.claims)

    def _look_at_neighbours(self, uid: PodUid, claims: Iterable[ClaimKey]) -> None:
        """Classify the other pods of these claims again: a claim of one pod counts by its requests.

        It does so no longer once two pods reference it.
        """
        for key in claims:
            pods = self._claims.pods(key)
            if len(pods) <= 2:
                for other in pods - {uid}:
                    self._place(other)

    def _place(self, uid: PodUid) -> None:
        """Put a pod into its present class."""
        before, pod = self._members[uid], self._find(uid)
        if pod is None:
            return
        world = self._world
        ready = is_ready(pod, world)
        class_key = class_key_of(pod, world.facts) if ready else None
        now = _Member(sort_key(pod), class_key, before.claims)
        if now != before:
            self._quit(before)
            self._members[uid] = now
            self.reason_changed[uid] = None
            self._join(now, pod)

    def _join(self, member: _Member, pod: PodView) -> None:
        if member.class_key is None:
            return
        pod_class = self.pod_classes.get(member.class_key)
        if pod_class is None:
            pod_class = self.pod_classes[member.class_key] = EquivalenceClass(
                member.class_key, asked(pod, self._world.facts)
            )
            self.requeued[member.class_key] = None
            self._gangs += bool(member.class_key.gang)
            for uid in claim_uids(pod_class.class_key):
                self._classes_of.setdefault(uid, {})[member.class_key] = None
        elif member.class_key.gang:
            self.requeued[member.class_key] = None
        pod_class.add(member.turn)

    def _quit(self, member: _Member) -> None:
        if member.class_key is None:
            return
        pod_class = self.pod_classes[member.class_key]
        pod_class.remove(member.turn)
        if pod_class.sort_keys and not member.class_key.gang:
            return
        self.requeued[member.class_key] = None
        if pod_class.sort_keys:
            return
        del self.pod_classes[member.class_key]
        self._gangs -= bool(member.class_key.gang)
        for uid in set(claim_uids(pod_class.class_key)):
            del self._classes_of[uid][member.class_key]
            if not self._classes_of[uid]:
                del self._classes_of[uid]


def _keys(pod: PodView) -> tuple[ClaimKey, ...]:
    return tuple((pod.namespace, name) for name in pod.claim_names)
