"""The gate keeper: which waiting pods may have their gate removed now, in a fair order.

    changes ──► lines woken ──► first of each line judged, fairest queue first
                                   ├─ admitted ──► assumed, gate to be removed
                                   └─ refused  ──► the line waits: at a spot, or for a change

Removing a gate is a decision like Filter's: the pod holds an assumption from then on, so that no
more pods go than fit. A gate cannot be put back: when the assumption lapses, the pod is
kube-scheduler's to try again. A pod that does not fit lets those behind it pass that do, since
devices may be in use for ever.

A decision costs the lines that were woken, not the pods that wait: of pods that are alike only
the first is judged, and a line that was refused for a ceiling is left alone until there is room.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime, timedelta
from itertools import islice

from scheduler_plugin.assumptions import LAPSE
from scheduler_plugin.backoffs import LONGEST_REST, Backoffs
from scheduler_plugin.blockades import Blockades, spot_of
from scheduler_plugin.gate_decisions import (
    GateCondition,
    GateRemoval,
    Place,
    WaitingPod,
    gate_condition,
    waiting_pod,
)
from scheduler_plugin.names import QUOTA_GATE, PodUid
from scheduler_plugin.pods import PodView
from scheduler_plugin.rounds import Round
from scheduler_plugin.verdicts import Admitted, Refused, Verdict, assume, judge
from scheduler_plugin.waiting_lines import Line, Shape
from scheduler_plugin.waiting_pods import WaitingPods
from scheduler_plugin.world import World
from scheduler_plugin.world_changes import (
    ClaimChanged,
    OtherChanged,
    PodChanged,
    QueueChanged,
    WorldChange,
)

RECHECK = timedelta(minutes=1)
"""How often lines are judged anew although no change seems to matter to them."""

LONGEST_AWAY = max(LAPSE, LONGEST_REST)
"""How long a pod is out of line at most; what is longer, the clock was set back by."""

MOST_LOOKED_AT = 100
"""How many pods are looked at in one go for those that have to be told something."""

MOST_VERDICTS = 200
"""How many verdicts are made in one go before others have their turn."""


class GateKeeper:
    """Decides about the waiting pods of one world. Tell it each change after the world took it."""

    def __init__(self, world: World, *, most_verdicts: int = MOST_VERDICTS) -> None:
        self._world = world
        self._most = most_verdicts
        self._waiting = WaitingPods(world)
        self._blockades = Blockades()
        self._open: dict[Shape, None] = {}
        # Pods that are out of line until a time: their gate is being removed, or that failed.
        self._away: dict[PodUid, datetime] = {}
        self._failures = Backoffs()
        self._untold: dict[PodUid, None] = {}
        self._recheck_at: datetime | None = None
        for pod in world.facts.pods():
            self._note_pod(pod.uid)

    def __len__(self) -> int:
        return len(self._waiting)

    def note(self, change: WorldChange) -> None:
        """Take a change. One that no waiting pod has to do with costs next to nothing.

        A decision elsewhere that assumes a claim, or no longer does, counts as its change.
        """
        match change:
            case PodChanged(uid):
                self._note_pod(uid)
            case ClaimChanged(uid):
                self._waiting.note_claim(uid)
            case QueueChanged():
                self._waiting.wake_all()
            case OtherChanged():
                self._waiting.review()

    def _note_pod(self, uid: PodUid) -> None:
        pod = self._world.facts.pod(uid)
        if pod is None or not pod.is_gated:
            self._away.pop(uid, None)
            self._failures.forget(uid)
        if uid in self._away:
            return
        self._waiting.note_pod(uid)
        line = self._waiting.line_of(uid)
        told = pod.admission if pod is not None else ""
        if uid in self._waiting and (line is None or line.reason not in ("", told)):
            self._untold[uid] = None

    def is_going(self, uid: PodUid, at: datetime) -> bool:
        """Whether it is decided, and holds until then, that the pod's gate is to be removed."""
        until = self._away.get(uid)
        return until is not None and until > at

    def removal_failed(self, uid: PodUid, now: datetime) -> None:
        """A gate could not be removed: nothing is assumed of the pod, and it rests."""
        if uid in self._away:
            self._world.assumptions.forget(uid)
            self._away[uid] = self._failures.failed(uid, now)

    def place(self, uid: PodUid) -> Place | None:
        """A pod's place in line; None for one that is not in any."""
        line, found = self._waiting.line_of(uid), self._waiting.ahead_of(uid)
        if line is None or found is None:
            return None
        ahead, waiting = found
        return Place(line.shape.queue, ahead + 1, waiting)

    # Decisions.

    @property
    def has_more(self) -> bool:
        """Whether the last decision stopped before its end: ask again."""
        return bool(self._open or self._waiting.woken)

    def next_look(self) -> datetime | None:
        """When to decide again even though nothing changes; None where nobody waits."""
        times = [*self._away.values()]
        if self._recheck_at is not None and len(self._waiting):
            times.append(self._recheck_at)
        return min(times, default=None)

    def decide(self, now: datetime) -> tuple[GateRemoval, ...]:
        """The pods that go now, in the order of their turns; each is assumed to be bound."""
        for pod in self._world.assumptions.expire(now):
            self._wake_claims_of(pod)
        self._come_back(now)
        self._recheck(now)
        self._wake(*self._blockades.opened(self._world))
        return tuple(self._removals(now))

    def _removals(self, now: datetime) -> Iterator[GateRemoval]:
        taking_turns = Round(self._waiting.lines, self._world)
        for _ in range(self._most):
            self._wake(*self._waiting.take_woken())
            taking_turns.add(self._open)
            self._open.clear()
            line = taking_turns.next()
            if line is None:
                return
            pod, verdict = self._judge_first(line, now)
            if isinstance(verdict, Refused):
                self._block(line, pod, verdict)
                continue
            self._open[line.shape] = None
            yield self._let_go(pod, verdict, now)
            taking_turns.charged({verdict.queue, *(claim.owner for claim in verdict.claims)})
        self._open |= dict.fromkeys(taking_turns.rest())

    def _wake(self, *shapes: Shape) -> None:
        for shape in shapes:
            self._blockades.remove(shape)
            self._open[shape] = None

    def _judge_first(self, line: Line, now: datetime) -> tuple[PodView, Verdict]:
        pod = self._world.facts.pod(line.turns[0][-1])
        assert pod is not None, "whoever waits is known"
        return pod, judge(pod, self._world.facts.claims_of(pod), self._world, now)

    def _let_go(self, pod: PodView, admitted: Admitted, now: datetime) -> GateRemoval:
        assume(pod, admitted, self._world, now)
        self._away[pod.uid] = now + LAPSE
        self._waiting.leave(pod.uid)
        self._untold.pop(pod.uid, None)
        self._wake_claims_of(pod.uid)
        return GateRemoval(
            namespace=pod.namespace,
            name=pod.name,
            uid=pod.uid,
            queue=admitted.queue,
        )

    def _wake_claims_of(self, uid: PodUid) -> None:
        """What is assumed of a pod changed: others may join its claims, or have to pay."""
        pod = self._world.facts.pod(uid)
        for claim in self._world.facts.claims_of(pod) if pod is not None else ():
            self._waiting.note_claim(claim.uid)

    def _block(self, line: Line, pod: PodView, refused: Refused) -> None:
        spot = spot_of(pod, refused, self._world)
        if spot is not None:
            self._blockades.put(line.shape, *spot)
        if line.reason != refused.reason:
            line.reason = refused.reason
            self._untold |= dict.fromkeys(turn[-1] for turn in line.turns)

    def _come_back(self, now: datetime) -> None:
        """Pods that still have their gate although it should be gone by now."""
        latest = now + LONGEST_AWAY
        for uid in [uid for uid, until in self._away.items() if not now < until <= latest]:
            del self._away[uid]
            self._note_pod(uid)

    def _recheck(self, now: datetime) -> None:
        """What no change tells: decisions that lapsed while others were asked."""
        if self._recheck_at is None or not now < self._recheck_at <= now + RECHECK:
            self._recheck_at = now + RECHECK
            for shape, line in self._waiting.lines.items():
                if any(line.claim_uids) or not self._blockades.has(shape):
                    self._waiting.woken[shape] = None

    # What people are told.

    def waiting(self, namespace: str, name: str, now: datetime) -> WaitingPod | str:
        """What is known of a waiting pod now; a sentence where it is none that waits."""
        pod = self._world.facts.pod_named(namespace, name)
        if pod is None:
            return f"Pod {namespace}/{name} does not exist, or asks for no devices."
        if not pod.is_gated:
            return f"{pod} does not wait at its gate {QUOTA_GATE}."
        return waiting_pod(pod, self.place(pod.uid), self._world, now)

    @property
    def has_untold(self) -> bool:
        """Whether there may be conditions to write: ask for them, again if there were none."""
        return bool(self._untold or self._waiting.moved)

    def take_conditions(self, now: datetime, most: int) -> tuple[GateCondition, ...]:
        """Conditions to write: of pods whose reason is another than the one that is written."""
        found: list[GateCondition] = []
        self._untold |= self._waiting.moved
        self._waiting.moved.clear()
        for uid in list(islice(self._untold, MOST_LOOKED_AT)):
            if len(found) == most:
                break
            del self._untold[uid]
            found += self._condition(uid, now)
        return tuple(found)

    def _condition(self, uid: PodUid, now: datetime) -> Iterator[GateCondition]:
        pod = self._world.facts.pod(uid)
        if pod is None or uid not in self._waiting:
            return
        condition = gate_condition(pod, self._world, now)
        if condition is None:
            # Somebody may get the room before it: then it has to be told after all.
            self._untold[uid] = None
        elif condition.reason != pod.admission:
            yield condition

    def condition_failed(self, uid: PodUid) -> None:
        """A condition could not be written: it is told again."""
        if uid in self._waiting:
            self._untold[uid] = None
