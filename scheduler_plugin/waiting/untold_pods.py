"""The waiting pods whose condition may say something else than why they wait."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import islice

from scheduler_plugin.accounting.world_views import WorldView
from scheduler_plugin.objects.names import PodUid
from scheduler_plugin.waiting.decisions import GateCondition, condition_of, gate_condition
from scheduler_plugin.waiting.lines.waiting_pods import WaitingPods

MOST_LOOKED_AT = 10
"""How many pods are looked at in one go for those that have to be told something."""


class UntoldPods:
    """Who has to be looked at. True while there may be conditions to write."""

    def __init__(self, world: WorldView, waiting: WaitingPods) -> None:
        self._world = world
        self._waiting = waiting
        self._uids: dict[PodUid, None] = {}

    def __bool__(self) -> bool:
        return bool(self._uids or self._waiting.moved)

    def note(self, uids: Iterable[PodUid]) -> None:
        """Why these wait may be another reason than the one that is written."""
        self._uids |= dict.fromkeys(uids)

    def drop(self, uid: PodUid) -> None:
        """The pod goes."""
        self._uids.pop(uid, None)

    def failed(self, uid: PodUid) -> None:
        """A condition could not be written: it is told again."""
        if uid in self._waiting:
            self._uids[uid] = None

    def take(self, most: int) -> tuple[GateCondition, ...]:
        """Conditions to write: of pods whose reason is another than the one that is written.

        Ask again, even if there were none, as long as this is true.
        """
        found: list[GateCondition] = []
        self._uids |= self._waiting.moved
        self._waiting.moved.clear()
        for uid in list(islice(self._uids, MOST_LOOKED_AT)):
            if len(found) == most:
                break
            del self._uids[uid]
            found += self._condition(uid)
        return tuple(found)

    def _condition(self, uid: PodUid) -> Iterator[GateCondition]:
        pod = self._world.facts.pod(uid)
        if pod is None or not pod.is_gated or uid not in self._waiting:
            return
        line = self._waiting.line_of(uid)
        if line is None or not line.signature.gang:
            kept = line.kept if line is not None else ""
            condition = gate_condition(pod, self._world, kept=kept)
        else:
            # It was judged as a whole: to judge it for each of its pods would cost their square.
            said = (line.reason, line.kept or line.refusal)
            condition = condition_of(pod, *said) if line.reason else None
        if condition is None:
            # Another pod may get the room before it: then it has to be told after all.
            self._uids[uid] = None
        elif condition.reason != pod.admission:
            yield condition
