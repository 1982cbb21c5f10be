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
from scheduler_plugin.judging.turns import Turn, asked, turn_of
from scheduler_plugin.objects.names import ClaimUid, PodUid, QueueName, Reason
from scheduler_plugin.objects.pods import PodView
from scheduler_plugin.waiting.decisions import Place, Wait
from scheduler_plugin.waiting.lines.claim_names import ClaimKey, NamedClaims
from scheduler_plugin.waiting.lines.lines import Line, Signature, claim_uids, signature_of
from scheduler_plugin.waiting.lines.ready_pods import is_ready

GroupKey: TypeAlias = tuple[str, str]
"""Namespace and name of a PodGroup."""


@dataclass(frozen=True, slots=True)
class _Member:
    """A waiting pod. A pod without a class cannot be judged yet."""

    turn: Turn
    signature: Signature | None
    claims: tuple[ClaimKey, ...]


class WaitingPods:
    """The classes with their pods, and the pods that cannot be judged yet.

    Attributes:
        lines: The classes, by key; none is empty.
        woken: The requeued classes: created, changed or deleted, or a change may concern them.
        moved: Pods whose reason to wait may have changed.
    """

    def __init__(self, world: WorldView, find: Callable[[PodUid], PodView | None]) -> None:
        """`find` returns a waiting pod as it is to be judged, and None for any other."""
        self._world = world
        self._find = find
        self.lines: dict[Signature, Line] = {}
        self.woken: dict[Signature, None] = {}
        self.moved: dict[PodUid, None] = {}
        self._members: dict[PodUid, _Member] = {}
        self._claims = NamedClaims(world)
        self._lines_of: dict[ClaimUid, dict[Signature, None]] = {}
        self._turns = world.assumptions.holds.turns
        # The number of classes that are gangs, and the PodGroup of each pod of a gang.
        self._gangs = 0
        self._groups: dict[PodUid, GroupKey] = {}

    def __len__(self) -> int:
        return len(self._members)

    def __contains__(self, pod: PodUid) -> bool:
        return pod in self._members

    def __iter__(self) -> Iterator[PodUid]:
        return iter(self._members)

    def line_of(self, pod: PodUid) -> Line | None:
        """The class of a pod; None for a pod that does not wait or cannot be judged yet."""
        member = self._members.get(pod)
        return self.lines[member.signature] if member and member.signature else None

    def place(self, uid: PodUid) -> Place | None:
        """A pod's position in its queue; None for a pod that is in no class."""
        member = self._members.get(uid)
        if member is None or member.signature is None:
            return None
        queue = member.signature.queue
        lines = [line for line in self.lines.values() if line.signature.queue == queue]
        ahead = sum(line.ahead_of(member.turn) for line in lines)
        return Place(queue, ahead + 1, sum(len(line.turns) for line in lines))

    def counts(self) -> Counter[QueueName]:
        """The number of queued pods, by queue."""
        found: Counter[QueueName] = Counter()
        for signature, line in self.lines.items():
            found[signature.queue] += len(line.turns)
        return found

    def lacking_room(self) -> list[PodUid]:
        """The pods of classes that lack room or devices; for a gang only its head."""
        return [
            turn[-1]
            for signature, line in self.lines.items()
            if line.reason in (Reason.OVER_LIMIT, Wait.NO_DEVICE_FREE)
            for turn in (line.turns[:1] if signature.gang else line.turns)
        ]

    def wake_held(self) -> None:
        """Requeue the classes of pods for which something is held.

        Their limiting quota counts what is held as used. When holds changed, the classes that wait
        for held devices are requeued as well.
        """
        turns = self._world.assumptions.holds.turns
        if turns != self._turns:
            self._turns = turns
            lines = self.lines.items()
            self.wake_lines(s for s, line in lines if line.reason == Reason.DEVICE_HELD)
        for hold in self._world.assumptions.holds:
            if (line := self.line_of(hold.pod)) is not None:
                self.woken[line.signature] = None

    def next_of(self, line: Line) -> PodUid:
        """The pod of a class to judge: one for which room is held, else the head."""
        held = (hold.pod for hold in self._world.assumptions.holds)
        mine = (uid for uid in held if self.line_of(uid) is line)
        return next(mine, line.turns[0][-1])

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
        self.wake(self._world.facts.claims_consumed_by(uid))

    def note_group(self, uid: PodUid) -> None:
        """A pod of a gang may have been created, changed, deleted, or decided about."""
        pod, before = self._world.facts.pod(uid), self._groups.pop(uid, None)
        key = before
        if pod is not None and is_of_gang(pod, self._world.facts):
            key = self._groups[uid] = (pod.namespace, pod.group)
        if key is not None:
            self._wake_gangs(self._world.facts.pods_in_group(key))

    def note_claim(self, uid: ClaimUid) -> None:
        """A claim was created, changed or deleted, or a decision uses it."""
        claim = self._world.facts.claim(uid)
        key = claim.key if claim is not None else self._claims.key_of(uid)
        if key is None or not (pods := self._claims.pods(key)):
            return
        if self._claims.learn(key) or len(pods) == 1:
            for pod in list(pods):
                self._place(pod)
        self.wake((uid,))

    def review(self, uid: PodUid) -> None:
        """Another object changed on which a pod's class or verdict may depend."""
        self._place(uid)
        line = self.line_of(uid)
        if line is not None:
            self.woken[line.signature] = None

    def line_to_judge(self, signature: Signature) -> Line | None:
        """A class with the present requests of its pods; None where it is gone."""
        line = self.lines.get(signature)
        first = self._find(line.turns[0][-1]) if line is not None else None
        if line is not None and first is not None:
            line.asks = asked(first, self._world.facts)
        return line

    def take_woken(self) -> Signature | None:
        """Remove and return a requeued class; it may be gone."""
        signature = next(iter(self.woken), None)
        if signature is not None:
            del self.woken[signature]
        return signature

    def wake_lines(self, signatures: Iterable[Signature]) -> None:
        """Requeue these classes."""
        self.woken |= dict.fromkeys(signatures)

    def wake(self, claims: Iterable[ClaimUid]) -> None:
        """Requeue the classes that use these claims: a change that no class key shows."""
        for uid in claims:
            self.woken |= self._lines_of.get(uid, {})
            if self._gangs and (key := self._claims.key_of(uid)) is not None:
                self._wake_gangs(self._claims.pods(key))

    def _wake_gangs(self, pods: Iterable[PodUid]) -> None:
        """Requeue the gangs of these pods."""
        found = (self._members.get(pod) for pod in pods)
        signatures = (member.signature for member in found if member and member.signature)
        self.wake_lines(signature for signature in signatures if signature.gang)

    # Members.

    def _enter(self, pod: PodView) -> None:
        claims = _keys(pod)
        before = self._members.get(pod.uid)
        if before is not None and before.claims == claims:
            self._place(pod.uid)
            return
        self.leave(pod.uid)
        self._members[pod.uid] = _Member(turn_of(pod), None, claims)
        self.moved[pod.uid] = None
        self._claims.add(pod.uid, claims)
        self._place(pod.uid)
        self._look_at_neighbours(pod.uid, claims)

    def leave(self, uid: PodUid) -> None:
        """Remove a pod, if it is here."""
        member = self._members.pop(uid, None)
        self.moved.pop(uid, None)
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
        signature = signature_of(pod, world.facts) if ready else None
        now = _Member(turn_of(pod), signature, before.claims)
        if now != before:
            self._quit(before)
            self._members[uid] = now
            self.moved[uid] = None
            self._join(now, pod)

    def _join(self, member: _Member, pod: PodView) -> None:
        if member.signature is None:
            return
        line = self.lines.get(member.signature)
        if line is None:
            line = self.lines[member.signature] = Line(
                member.signature, asked(pod, self._world.facts)
            )
            self.woken[member.signature] = None
            self._gangs += bool(member.signature.gang)
            for uid in claim_uids(line.signature):
                self._lines_of.setdefault(uid, {})[member.signature] = None
        elif member.signature.gang:
            self.woken[member.signature] = None
        line.add(member.turn)

    def _quit(self, member: _Member) -> None:
        if member.signature is None:
            return
        line = self.lines[member.signature]
        line.remove(member.turn)
        if line.turns and not member.signature.gang:
            return
        self.woken[member.signature] = None
        if line.turns:
            return
        del self.lines[member.signature]
        self._gangs -= bool(member.signature.gang)
        for uid in set(claim_uids(line.signature)):
            del self._lines_of[uid][member.signature]
            if not self._lines_of[uid]:
                del self._lines_of[uid]


def _keys(pod: PodView) -> tuple[ClaimKey, ...]:
    return tuple((pod.namespace, name) for name in pod.claim_names)
