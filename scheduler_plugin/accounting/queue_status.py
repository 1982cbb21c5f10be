"""The status of a Queue: what the ledger says of it, and what is odd about it.

    conditions            True                                         else
    Accepted              the spec can be read                         False, with all its problems
    ParentMissing         the parent does not exist                    absent
    ParentCycle           the path upwards leads into a cycle          absent

`requested` is the usage and what waiting pods ask for. Of a Queue that cannot be read the figures
stay what they were, since the queue itself counts as it was.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from driver.api import timestamp
from scheduler_plugin.accounting.world import World
from scheduler_plugin.objects.amounts import Charges, ResourceKey, for_status
from scheduler_plugin.objects.fields import JsonObject
from scheduler_plugin.objects.names import Queue, QueueCondition, QueueName
from scheduler_plugin.objects.projections import UnreadableQueue, project_queue

SHORTEST_SECONDS = 1.0
LONGEST_SECONDS = 5.0
"""Between these a status rests after a write. One change is shown at once.

Under load every figure changes all the time, and whoever reads them a second later reads another
one anyway: there the writes would be a tenth of the API server's work, which costs as much for a
merge patch of one figure as for an apply of them all.
"""

_LONGEST_MESSAGE = 32768
_FIGURES = ("usage", "usageNonPreemptible", "requested", "claims")
_REASONS = {
    QueueCondition.PARENT_MISSING: "ParentNotFound",
    QueueCondition.PARENT_CYCLE: "Cycle",
}


@dataclass(frozen=True, slots=True)
class QueueObject:
    """A Queue as it is stored.

    Attributes:
        status: As the API returns it; {} where there is none.
    """

    queue: Queue | UnreadableQueue
    status: Mapping[str, Any]

    @property
    def name(self) -> QueueName:
        return QueueName(self.queue.name)


def rest_seconds(writes: int) -> float:
    """For how long a status rests that was written so often without being quiet between."""
    return min(LONGEST_SECONDS, SHORTEST_SECONDS * (1 << min(writes - 1, 30)))


@dataclass(frozen=True, slots=True)
class _Condition:
    type: QueueCondition
    holds: bool
    reason: str
    message: str


def queue_object(obj: JsonObject) -> QueueObject:
    """Parse a stored Queue."""
    status = obj.get("status")
    return QueueObject(project_queue(obj), dict(status) if isinstance(status, Mapping) else {})


def queue_status(found: QueueObject, world: World, now: datetime) -> JsonObject | None:
    """The status that a Queue should have; None where it has it.

    None, too, where the world knows another spec: "in force" must be so, and whichever of the two
    is behind will hear of it.
    """
    queue = found.queue
    if isinstance(queue, Queue) and world.facts.tree.get(queue.name) != queue:
        return None
    if isinstance(queue, UnreadableQueue):
        figures = {name: found.status[name] for name in _FIGURES if name in found.status}
    else:
        figures = _figures(queue, world)
    before = _conditions_by_type(found.status)
    conditions = [
        _condition_json(condition, before.get(condition.type, {}), queue.generation, now)
        for condition in _conditions(queue, world)
    ]
    status = {"observedGeneration": queue.generation, **figures, "conditions": conditions}
    return None if _is_stored(status, found.status) else status


def _figures(queue: Queue, world: World) -> dict[str, Any]:
    """Figures of no class at all are left out.

    Where an apply empties a map, the API server makes it null, which the definition refuses.
    """
    usage = world.ledger.of(queue.name)
    keys = queue.shares.keys()
    amounts = {
        "usage": _amounts(usage.usage, keys),
        "usageNonPreemptible": _amounts(usage.non_preemptible, keys),
        "requested": _amounts(usage.requested, keys),
    }
    claims = {"owned": usage.owned, "sharedOut": usage.shared_out}
    if usage.orphans:
        claims["orphans"] = usage.orphans
    return {**{name: found for name, found in amounts.items() if found}, "claims": claims}


def _amounts(found: Charges, listed: Iterable[ResourceKey]) -> dict[str, int]:
    """By class; what the queue lists is shown with 0, too."""
    amounts = {**dict.fromkeys(listed, 0), **dict(found)}
    return {key: for_status(amounts[key]) for key in sorted(amounts)}


def _conditions(queue: Queue | UnreadableQueue, world: World) -> Iterator[_Condition]:
    name = QueueName(queue.name)
    yield _accepted(queue)
    for found, message in world.facts.tree.conditions(name):
        yield _Condition(found, True, _REASONS[found], message)


def _accepted(queue: Queue | UnreadableQueue) -> _Condition:
    if isinstance(queue, UnreadableQueue):
        return _Condition(QueueCondition.ACCEPTED, False, "Invalid", str(queue))
    return _Condition(QueueCondition.ACCEPTED, True, "Valid", "The spec is in force.")


def _condition_json(
    condition: _Condition, before: Mapping[str, Any], generation: int, now: datetime
) -> dict[str, Any]:
    """The condition; the time of its last transition stays while its status does."""
    status = str(condition.holds)
    since = before.get("lastTransitionTime") if before.get("status") == status else None
    return {
        "type": str(condition.type),
        "status": status,
        "observedGeneration": generation,
        "lastTransitionTime": since or timestamp(now),
        "reason": condition.reason,
        "message": condition.message[:_LONGEST_MESSAGE],
    }


def _conditions_by_type(status: Mapping[str, Any]) -> dict[str, Mapping[str, Any]]:
    return {condition["type"]: condition for condition in status.get("conditions") or ()}


def _is_stored(status: Mapping[str, Any], stored: Mapping[str, Any]) -> bool:
    """Whether all of it is there already; other writers' conditions are theirs."""
    ours = [c for t, c in _conditions_by_type(stored).items() if t in list(QueueCondition)]
    conditions = {c["type"]: c for c in status["conditions"]}
    return {**status, "conditions": conditions} == {
        **{name: value for name, value in stored.items() if name in (*status, *_FIGURES)},
        "conditions": {c["type"]: c for c in ours},
    }
