"""Who waits, at the gate or refused without one; and which lines a change may mean something to.

A change costs what it touches: one pod its own claims, one claim the lines of the pods that name
it, a namespace or a PodGroup its pods. Only what all lines may depend on (classes, say) makes all
be looked at, some at a time: until a pod's turn to be looked at comes, it stands where it stood.
Whatever happens to one pod of a group that goes together, the others may go by now, or no longer:
it came, it may be judged by now, it was let go or bound, it ended.
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
    """A waiting pod; without a signature it cannot be judged yet."""

    turn: Turn
    signature: Signature | None
    claims: tuple[ClaimKey, ...]


class WaitingPods:
    """The lines, and the pods in them or about to be.

    Attributes:
        lines: By signature; none is empty.
        woken: Lines that came, changed or went, or that a change may matter to.
        moved: Pods that wait for something else than before, perhaps.
    """

    def __init__(self, world: WorldView, find: Callable[[PodUid], PodView | None]) -> None:
        """`find` tells of a pod that waits as it is to be judged, and None of any other."""
        self._world = world
        self._find = find
        self.lines: dict[Signature, Line] = {}
        self.woken: dict[Signature, None] = {}
        self.moved: dict[PodUid, None] = {}
        self._members: dict[PodUid, _Member] = {}
        self._claims = NamedClaims(world)
        self._lines_of: dict[ClaimUid, dict[Signature, None]] = {}
        self._turns = world.assumptions.holds.turns
        # How many lines are of pods that go together, and the groups of all such pods.
        self._gangs = 0
        self._groups: dict[PodUid, GroupKey] = {}

    def __len__(self) -> int:
        return len(self._members)

    def __contains__(self, pod: PodUid) -> bool:
        return pod in self._members

    def __iter__(self) -> Iterator[PodUid]:
        return iter(self._members)

    def line_of(self, pod: PodUid) -> Line | None:
        """The line of a pod; None for one that does not wait or cannot be judged yet."""
        member = self._members.get(pod)
        return self.lines[member.signature] if member and member.signature else None

    def place(self, uid: PodUid) -> Place | None:
        """A pod's place among those of its queue; None for one that is not in any line."""
        member = self._members.get(uid)
        if member is None or member.signature is None:
            return None
        queue = member.signature.queue
        lines = [line for line in self.lines.values() if line.signature.queue == queue]
        ahead = sum(line.ahead_of(member.turn) for line in lines)
        return Place(queue, ahead + 1, sum(len(line.turns) for line in lines))

    def counts(self) -> Counter[QueueName]:
        """How many wait in line, by queue."""
        found: Counter[QueueName] = Counter()
        for signature, line in self.lines.items():
            found[signature.queue] += len(line.turns)
        return found

    def lacking_room(self) -> list[PodUid]:
        """The pods of lines that lack room or devices; of a gang the first stands for all."""
        return [
            turn[-1]
            for signature, line in self.lines.items()
            if line.reason in (Reason.OVER_LIMIT, Wait.NO_DEVICE_FREE)
            for turn in (line.turns[:1] if signature.gang else line.turns)
        ]

    def wake_held(self) -> None:
        """The lines of pods that room is held for: at their bottleneck it counts as used.

        And those that wait until others have their devices, once some do.
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
        """Whose turn it is: the pod that room is held for, else the first."""
        held = (hold.pod for hold in self._world.assumptions.holds)
        mine = (uid for uid in held if self.line_of(uid) is line)
        return next(mine, line.turns[0][-1])

    # Changes.

    def note_pod(self, uid: PodUid) -> None:
        """A pod came, changed or went: any pod that may use devices."""
        waiting, pod = self._find(uid), self._world.facts.pod(uid)
        if waiting is not None:
            self._enter(waiting)
        elif uid in self._members:
            self.leave(uid)
        elif pod is not None:
            self._look_at_neighbours(uid, _keys(pod))
        self.wake(self._world.facts.claims_consumed_by(uid))

    def note_group(self, uid: PodUid) -> None:
        """A pod of those that go together may have come, changed, gone, or been decided about."""
        pod, before = self._world.facts.pod(uid), self._groups.pop(uid, None)
        key = before
        if pod is not None and is_of_gang(pod, self._world.facts):
            key = self._groups[uid] = (pod.namespace, pod.group)
        if key is not None:
            self._wake_gangs(self._world.facts.pods_in_group(key))

    def note_claim(self, uid: ClaimUid) -> None:
        """A claim came, changed or went, or a decision was made that uses it."""
        claim = self._world.facts.claim(uid)
        key = claim.key if claim is not None else self._claims.key_of(uid)
        if key is None or not (pods := self._claims.pods(key)):
            return
        if self._claims.learn(key) or len(pods) == 1:
            for pod in list(pods):
                self._place(pod)
        self.wake((uid,))

    def review(self, uid: PodUid) -> None:
        """Something changed that a member's signature or verdict may follow from."""
        self._place(uid)
        line = self.line_of(uid)
        if line is not None:
            self.woken[line.signature] = None

    def line_to_judge(self, signature: Signature) -> Line | None:
        """A line with what its pods ask for by now; None for none."""
        line = self.lines.get(signature)
        first = self._find(line.turns[0][-1]) if line is not None else None
        if line is not None and first is not None:
            line.asks = asked(first, self._world.facts)
        return line

    def take_woken(self) -> Signature | None:
        """One of the lines that were woken and not taken since; it may be gone."""
        signature = next(iter(self.woken), None)
        if signature is not None:
            del self.woken[signature]
        return signature

    def wake_lines(self, signatures: Iterable[Signature]) -> None:
        """These are to be looked at."""
        self.woken |= dict.fromkeys(signatures)

    def wake(self, claims: Iterable[ClaimUid]) -> None:
        """Something about these claims changed that no signature shows."""
        for uid in claims:
            self.woken |= self._lines_of.get(uid, {})
            if self._gangs and (key := self._claims.key_of(uid)) is not None:
                self._wake_gangs(self._claims.pods(key))

    def _wake_gangs(self, pods: Iterable[PodUid]) -> None:
        """Something about these pods, or others of their groups, changed."""
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
        """Take a pod out, if it is there, without a trace."""
        member = self._members.pop(uid, None)
        self.moved.pop(uid, None)
        if member is None:
            return
        self._quit(member)
        self._claims.remove(uid, member.claims)
        self._look_at_neighbours(uid, member.claims)

    def _look_at_neighbours(self, uid: PodUid, claims: Iterable[ClaimKey]) -> None:
        """A claim that is a pod's alone is known by its signature, and no longer if two name it."""
        for key in claims:
            pods = self._claims.pods(key)
            if len(pods) <= 2:
                for other in pods - {uid}:
                    self._place(other)

    def _place(self, uid: PodUid) -> None:
        """Put a member into the line where it belongs by now."""
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
