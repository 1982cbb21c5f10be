"""Conditions to write: waiting pods whose written condition may name an outdated reason."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import islice

from scheduler_plugin.accounting.world_views import WorldView
from scheduler_plugin.objects.names import PodUid
from scheduler_plugin.waiting.admissions import GateCondition, condition_of, gate_condition
from scheduler_plugin.waiting.classes.waiting_pods import WaitingPods

MOST_LOOKED_AT = 10
"""How many pods one call of `take` looks at."""


class PendingConditions:
    """The pods to look at. It is true while there may be conditions to write."""

    def __init__(self, world: WorldView, waiting: WaitingPods) -> None:
        self._world = world
        self._waiting = waiting
        self._uids: dict[PodUid, None] = {}

    def __bool__(self) -> bool:
        return bool(self._uids or self._waiting.reason_changed)

    def note(self, uids: Iterable[PodUid]) -> None:
        """The reason of these pods may differ from their written condition."""
        self._uids |= dict.fromkeys(uids)

    def drop(self, uid: PodUid) -> None:
        """The pod is admitted."""
        self._uids.pop(uid, None)

    def failed(self, uid: PodUid) -> None:
        """The write of a condition failed: it is to be written again."""
        if uid in self._waiting:
            self._uids[uid] = None

    def take(self, most: int) -> tuple[GateCondition, ...]:
        """At most `most` conditions to write, of pods whose reason differs from the written one.

        Call it again while this object is true, even after an empty answer.
        """
        found: list[GateCondition] = []
        self._uids |= self._waiting.reason_changed
        self._waiting.reason_changed.clear()
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
        pod_class = self._waiting.class_of(uid)
        if pod_class is None or not pod_class.class_key.gang:
            yields_to = pod_class.yields_to if pod_class is not None else ""
            condition = gate_condition(pod, self._world, yields_to=yields_to)
        else:
            # The gang was judged as a whole: to judge it once for each pod would cost the square.
            said = (pod_class.reason, pod_class.yields_to or pod_class.refusal)
            condition = condition_of(pod, *said) if pod_class.reason else None
        if condition is None:
            # Another pod may get the room first: then this pod needs a condition after all.
            self._uids[uid] = None
        elif condition.reason != pod.admission:
            yield condition
