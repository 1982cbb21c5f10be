"""Who waits and may go now, in a fair order: at the gate, or refused without one.

    changes ──► lines woken ──► first of each line judged, fairest queue first
                                   ├─ admitted ──► assumed, to be let go
                                   └─ refused  ──► the line waits: at a bottleneck, or for a change

Letting a pod go is a decision like Filter's: the pod holds an assumption from then on, so that no
more go than fit. At the gate it means that the gate is removed; that cannot be put back: when the
assumption lapses, the pod is kube-scheduler's to try again. A pod without a gate is told that it
fits, so that kube-scheduler tries it again; one that it does not ask about keeps its room for a
while, and then rests. A pod that does not fit lets those behind it pass that do, since devices may
be in use without a limit.

A decision costs the lines that were woken, not the pods that wait: of pods that are alike only
the first is judged, and one that a ceiling refused is left alone until there is room. It is made
in small steps; only when all that changed is taken in is the next line's turn.
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
from scheduler_plugin.waiting.asked_pods import asked_pod
from scheduler_plugin.waiting.away.away_pods import AwayPods
from scheduler_plugin.waiting.decisions import (
    LetGo,
    Place,
    WaitingPod,
)
from scheduler_plugin.waiting.judged_lines import JudgedLines, TooFew
from scheduler_plugin.waiting.kept_lines import KeptLines
from scheduler_plugin.waiting.lines.blockades import Blockades, Bottleneck
from scheduler_plugin.waiting.lines.lines import Line, Signature
from scheduler_plugin.waiting.lines.refused_pods import as_it_waits
from scheduler_plugin.waiting.lines.soon_lines import SoonLines
from scheduler_plugin.waiting.lines.waiting_pods import WaitingPods
from scheduler_plugin.waiting.moved_pods import MovedPods
from scheduler_plugin.waiting.pod_states import PodState
from scheduler_plugin.waiting.turns.aging import AgedPods
from scheduler_plugin.waiting.turns.rounds import Round
from scheduler_plugin.waiting.untold_pods import UntoldPods

RECHECK_SECONDS = 60.0
"""How often lines are judged anew although no change seems to matter to them."""

LOOK_SECONDS = 0.25
"""How long lines take their turns before all that changed meanwhile is taken in."""

PATIENCE = 20
"""How many times as long that may take itself: with thousands of lines it does."""


class GateKeeper:
    """Decides about the waiting pods of one world. Tell it each change after the world took it.

    Moments are seconds of the monotonic clock.
    """

    def __init__(
        self,
        world: World,
        refused: Container[PodUid] = (),
        *,
        look_seconds: float = LOOK_SECONDS,
        first_turn: timedelta = timedelta.max,
        too_few: TooFew = lambda _: "",
    ) -> None:
        """Nothing is decided yet.

        Args:
            world: What is known.
            refused: The pods without a gate that wait; say so when one comes or goes.
            look_seconds: How long lines take their turns before changes are taken in.
            first_turn: How long it is until room is left for a pod, for the first time.
            too_few: Looks at devices, for pods that go together.
        """
        self._world = world
        self._as_it_waits = partial(as_it_waits, world, refused)
        self._look_seconds = look_seconds
        self._waiting = WaitingPods(world, self._as_it_waits)
        self._blockades = Blockades()
        self._round = Round(self._waiting.lines, world)
        # What is to be looked at: pods, lines, bottlenecks; and whether to do so once more.
        self._unseen = OrderedDict[PodUid, None]((pod.uid, None) for pod in world.facts.pods())
        self._rechecked, self._stale = list[Signature](), list[Signature]()
        self._bottlenecks: list[Bottleneck] = []
        self._again, self._next_look = False, float("-inf")
        self._has_judged, self.away = False, AwayPods()
        self.untold = UntoldPods(world, self._waiting)
        places = (self._waiting, self.away, self.untold)
        self._moved = MovedPods(
            world, places, self._as_it_waits, lambda line: self._round.moved_up(line)
        )
        aged = AgedPods(world, self._waiting.lines, first_turn)
        self._kept = KeptLines(self._waiting, self.untold, self._blockades, aged)
        self._recheck_at, self._soon = float("-inf"), SoonLines()
        lines = (self._waiting, self._kept, self._soon)
        self._judged = JudgedLines(world, lines, self._as_it_waits, self._moved.may_come, too_few)
        self.waiting_pods = self._waiting.counts

    def __len__(self) -> int:
        return len(self._waiting)

    def __iter__(self) -> Iterator[PodUid]:
        return iter(self._waiting)

    def note(self, change: WorldChange) -> None:
        """Take a change. One that no waiting pod has to do with costs next to nothing.

        A decision elsewhere that assumes a claim, or no longer does, counts as its change.
        """
        self._again = True
        facts = self._world.facts
        match change:
            case PodChanged(uid):
                self._moved.note(uid)
            case ClaimChanged(uid):
                self._waiting.note_claim(uid)
                self._soon.hurry()
            case QueueChanged():
                self._stale = list(self._waiting.lines)
                self._round = Round(self._waiting.lines, self._world)
            case NamespaceChanged(name):
                self._unseen |= dict.fromkeys(facts.pods_in_namespace(name))
            case GroupChanged(namespace, name):
                self._unseen |= dict.fromkeys(facts.pods_in_group((namespace, name)))
            case OtherChanged():
                self._unseen |= dict.fromkeys(self._waiting)

    def look_again(self) -> None:
        """What is assumed changed: there may be room, for any pod."""
        self._again = True

    def tried(self, uid: PodUid, moment: float) -> None:
        """kube-scheduler asked about a pod without a gate: what was decided of it is over."""
        self._again = True
        self._moved.tried(uid, moment)

    def is_going(self, uid: PodUid, moment: float) -> bool:
        """Whether it is decided, and holds until then, that the pod is let go."""
        return self.away.is_going(uid, moment)

    def failed(self, uid: PodUid, moment: float, *, is_servers: bool = False) -> None:
        """A pod could not be let go: nothing is assumed of it, and it rests (`AwayPods.rest`)."""
        self._again |= self._moved.failed(uid, moment, is_servers=is_servers)

    @property
    def has_more(self) -> bool:
        """Whether the last decision stopped before its end: ask again."""
        return self._again or self.is_busy

    @property
    def is_busy(self) -> bool:
        """Whether it is known that a pod or line has to be looked at."""
        found = self._unseen or self._rechecked or self._stale or self._bottlenecks
        return bool(found or self._waiting.woken or self._round)

    @property
    def is_reviewing(self) -> bool:
        """Whether pods have to be looked at because something changed that is not theirs."""
        return bool(self._unseen)

    def next_look(self) -> float | None:
        """When to decide again even though nothing changes; None where no pod waits."""
        back, soon = self.away.next_moment(), self._soon.next_moment
        if not len(self._waiting):
            return back
        ours = self._recheck_at if soon is None else soon
        return ours if back is None else min(back, ours)

    def decide(self, now: datetime, moment: float, most: int | None = None) -> tuple[LetGo, ...]:
        """The pods that go now, in the order of their turns; each is assumed to be bound.

        Args:
            now: What clocks show.
            moment: The same moment on the monotonic clock.
            most: How many steps it takes at the most, about 0.1 ms each; None for all.
        """
        for pod in self._world.assumptions.expire(now):
            self._moved.wake_claims_of(pod)
            self._again = True
        self._again |= self._moved.come_back(moment)
        self._again |= self._soon.are_due(moment)
        if moment >= self._recheck_at:
            self._recheck_at = moment + RECHECK_SECONDS
            self._rechecked = list(self._waiting.lines)
        if not self.is_busy or (self._again and not self._round and moment >= self._next_look):
            self._look(moment)
        return tuple(chain.from_iterable(islice(self._steps(now, moment), most)))

    def _look(self, moment: float) -> None:
        """Take in what changed: where there is room by now, and who stands how."""
        self._again = self._has_judged = False
        self._next_look = moment + PATIENCE * self._look_seconds
        self._bottlenecks = self._blockades.bottlenecks()
        self._waiting.wake_lines(self._soon.take(moment))
        self._stale += self._round.rest()
        self._waiting.wake_held()
        self._round = Round(self._waiting.lines, self._world)

    def _steps(self, now: datetime, moment: float) -> Iterator[tuple[LetGo, ...]]:
        """What changed is taken in first, then one line after the other is judged."""
        while True:
            if self._takes_in(now):
                yield ()
            elif self._again and (moment >= self._next_look or not self._round):
                self._look(moment)
            elif (line := self._round.next()) is not None:
                if not self._has_judged:
                    self._has_judged = True
                    self._next_look = moment + self._look_seconds
                yield self._judge(line, now, moment)
            else:
                self._next_look = float("-inf")
                return

    def _takes_in(self, now: datetime) -> bool:
        """Take in one thing that changed; False where there is none."""
        if self._unseen:
            self._look_at_pod(self._unseen.popitem(last=False)[0])
        elif self._rechecked:
            self._recheck(self._rechecked.pop(), now)
        elif self._bottlenecks:
            self._waiting.wake_lines(self._blockades.opened(self._bottlenecks.pop(), self._world))
        elif self._stale:
            self._take_in(self._stale.pop())
        elif (signature := self._waiting.take_woken()) is not None:
            self._take_in(signature)
        else:
            return False
        return True

    def _look_at_pod(self, uid: PodUid) -> None:
        if uid in self._waiting:
            self._waiting.review(uid)
            self._waiting.note_group(uid)
        else:
            self._moved.note(uid)

    def _take_in(self, signature: Signature) -> None:
        self._blockades.remove(signature)
        if self._waiting.line_to_judge(signature) is not None:
            self._round.add((signature,))
        else:
            self._kept.free(signature)

    def _judge(self, line: Line, now: datetime, moment: float) -> tuple[LetGo, ...]:
        going = self._judged.judge(line, now)
        return tuple(self._let_go(pod, verdict, now, moment) for pod, verdict in going)

    def _let_go(self, pod: PodView, admitted: Admitted, now: datetime, moment: float) -> LetGo:
        found = self._moved.let_go(pod, admitted, now, moment)
        self._round.charged({admitted.queue, *(claim.owner for claim in admitted.claims)})
        return found

    def _recheck(self, signature: Signature, now: datetime) -> None:
        line = self._waiting.lines.get(signature)
        first = self._as_it_waits(line.turns[0][-1]) if line is not None else None
        if self._kept.is_due(signature, first, now):
            self._waiting.wake_lines((signature,))

    # What people are told.

    def state(self, uid: PodUid) -> PodState:
        """Where a pod stands; `MOVES` says what brings it elsewhere."""
        return self._moved.state(uid)

    def place(self, uid: PodUid) -> Place | None:
        """A pod's place in line; None for one that is not in any."""
        return self._waiting.place(uid)

    def lacking_room(self) -> list[PodUid]:
        """The pods of lines that were refused for a limit; of a gang one stands for all."""
        return self._waiting.lacking_room()

    def waiting(self, namespace: str, name: str) -> WaitingPod | str:
        """What is known of a waiting pod now; a sentence where it is none that waits."""
        return asked_pod((namespace, name), self._world, self._waiting, self._as_it_waits)
