"""The status of a Queue: figures from the ledger, and conditions.

    Accepted              the spec is in force; False if an entry is of another version
    ParentMissing         the parent does not exist
    ParentCycle           the queue's ancestors form a cycle
    Unattributed          pods name the queue that are charged to no queue
    QuotaUnmet            pods wait within the quota, and no pod can be evicted for them
    QuotaExceedsDevices   quotas have exceeded the published devices for some time
    OverQuota             the usage exceeds the quota
    NearLimit             at least nine tenths of a limit are used
    Unguarded             other schedulers may allocate what the queue lists, uncharged

Any other condition is True or absent. `requested` is the usage and what pending pods ask for.
`summary` repeats other fields for the columns of `kubectl get`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from kube.shapes.reading import JsonObject
from kube.shapes.times import timestamp
from scheduler_plugin.accounting.charges.entries import unattributed_sentence
from scheduler_plugin.accounting.figures.quota_excess import Excess
from scheduler_plugin.accounting.figures.summaries import summary
from scheduler_plugin.accounting.world_views import WorldView
from scheduler_plugin.objects.amounts import (
    NO_CHARGES,
    Ceiling,
    Charges,
    ResourceKey,
    charges,
)
from scheduler_plugin.objects.claims import ClassName
from scheduler_plugin.objects.devices.driver_guards import unguarded, unguarded_driver
from scheduler_plugin.objects.measures import amount_text, amount_value, ceiling_text
from scheduler_plugin.objects.names import Queue, QueueCondition, QueueName
from scheduler_plugin.objects.queue_objects import parse_queue

PODS_NAMED = 3
"""The maximum number of pods that a condition names."""

_LONGEST_MESSAGE = 32768
_TRUE = "True"
_FIGURES = (
    *("usage", "usageNonPreemptible", "requested"),
    *("share", "reclaimable", "held", "claims", "summary", "waiting"),
)
LATE_FIELDS = frozenset({"summary", "waiting"})
"""Fields that definitions of earlier versions lack: Helm does not upgrade definitions."""

_REASONS = {
    QueueCondition.PARENT_MISSING: "ParentNotFound",
    QueueCondition.PARENT_CYCLE: "Cycle",
    QueueCondition.UNATTRIBUTED: "NotJudged",
    QueueCondition.QUOTA_UNMET: "NobodyCanGo",
    QueueCondition.QUOTA_EXCEEDS_DEVICES: "TooFewDevices",
    QueueCondition.OVER_QUOTA: "Borrowing",
    QueueCondition.NEAR_LIMIT: "AlmostUsedUp",
    QueueCondition.UNGUARDED: "DriverNotAccounted",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class StatusInputs:
    """The parts of a status that do not follow from the current world alone.

    Attributes:
        share: The queue's fair share.
        waiting: The number of pending pods; None to omit it.
        excess: How its quotas exceed the devices; None if they do not.
        without: Fields that the definition lacks.
    """

    share: Charges = NO_CHARGES
    waiting: int | None = None
    excess: Excess | None = None
    without: frozenset[str] = frozenset()


NO_STATUS_INPUTS = StatusInputs()


@dataclass(frozen=True, slots=True)
class QueueObject:
    """A Queue as it is stored.

    Attributes:
        status: The status as the API returns it; {} if there is none.
    """

    queue: Queue
    status: Mapping[str, Any]


def queue_object(obj: JsonObject) -> QueueObject:
    """Parse a stored Queue."""
    return QueueObject(parse_queue(obj), obj.get("status") or {})


def queue_status(
    found: QueueObject, world: WorldView, now: datetime, inputs: StatusInputs = NO_STATUS_INPUTS
) -> JsonObject | None:
    """The status that a Queue should have; None if it has it.

    None, too, if the world has another version of the spec: the condition Accepted must be about
    the spec in force. The watch that lags behind causes another call.
    """
    queue = found.queue
    if world.facts.tree.get(queue.name) != queue:
        return None
    before, generation = _conditions_by_type(found.status), queue.generation
    odd: list[tuple[QueueCondition, str]]
    odd = [*world.facts.tree.conditions(queue.name), *_unattributed(queue.name, world)]
    if queue.name in world.unmet:
        odd.append((QueueCondition.QUOTA_UNMET, world.unmet[queue.name]))
    odd += _excess_condition(inputs.excess, before)
    odd += _usage_conditions(queue, dict(world.ledger.of(queue.name).usage))
    odd += _unguarded(queue, world)
    said = [_accepted(queue), *((kind, _TRUE, _REASONS[kind], message) for kind, message in odd)]
    conditions = [
        {
            "type": str(kind),
            "status": status,
            "observedGeneration": generation,
            "lastTransitionTime": _since(before.get(kind, {}), status) or timestamp(now),
            "reason": reason,
            "message": message[:_LONGEST_MESSAGE],
        }
        for kind, status, reason, message in said
    ]
    figures = _figures(queue, world, inputs)
    status = {"observedGeneration": generation, **figures, "conditions": conditions}
    return None if _is_stored(status, found.status) else status


def _accepted(queue: Queue) -> tuple[QueueCondition, str, str, str]:
    if not queue.misread:
        return QueueCondition.ACCEPTED, _TRUE, "Valid", "The spec is in force."
    what = " ".join(queue.misread)
    then = "No pod is bound until the plugin has the version that wrote it, or it is removed."
    return QueueCondition.ACCEPTED, "False", "OtherVersion", f"{what} {then}"


def _unattributed(name: QueueName, world: WorldView) -> Iterator[tuple[QueueCondition, str]]:
    """The condition about pods that name the queue and are not charged to it."""
    uids = world.ledger.unattributed_of(name)
    pods = filter(None, map(world.facts.pod, uids[:PODS_NAMED]))
    sentences = [unattributed_sentence(pod, world.facts) for pod in pods]
    if len(uids) > PODS_NAMED:
        sentences.append(f"{len(uids) - PODS_NAMED} more pods are like this.")
    if sentences:
        yield QueueCondition.UNATTRIBUTED, " ".join(sentences)


def _excess_condition(
    excess: Excess | None, before: Mapping[str, Mapping[str, Any]]
) -> Iterator[tuple[QueueCondition, str]]:
    """The condition about an excess of quotas; it stays as long as the excess, across leaders."""
    kind = QueueCondition.QUOTA_EXCEEDS_DEVICES
    if excess is not None and (excess.lasting or _since(before.get(kind, {}))):
        yield kind, excess.now


def _unguarded(queue: Queue, world: WorldView) -> Iterator[tuple[QueueCondition, str]]:
    """The condition about listed classes of drivers that no policy guards."""
    facts = world.facts
    guarded, sentences = facts.settings.accounted_drivers, []
    for key, share in sorted(queue.shares.items()):
        view = facts.catalog.class_named(ClassName(queue.class_of(key)))
        if view is not None:
            sentences.append(unguarded(view, facts.drivers_allocated_through(view.name), guarded))
        if share.definition is not None and (driver := share.definition.driver):
            sentences.append(unguarded_driver(str(key), driver, guarded))
    if found := " ".join(dict.fromkeys(filter(None, sentences))):
        yield QueueCondition.UNGUARDED, found


def _usage_conditions(
    queue: Queue, used: Mapping[ResourceKey, int]
) -> Iterator[tuple[QueueCondition, str]]:
    """The conditions about usage beyond quotas, and close to limits."""
    listed = [(key, share, used.get(key, 0)) for key, share in sorted(queue.shares.items())]
    over = [_used("quota", k, n, s.quota) for k, s, n in listed if not s.quota.allows(n)]
    near = [_used("limit", k, n, s.most) for k, s, n in listed if _is_near(n, s.most)]
    if over:
        what = "the usage beyond the quota may be reclaimed for queues below their quota"
        yield QueueCondition.OVER_QUOTA, f"It uses {', '.join(over)}: {what}."
    if near:
        yield QueueCondition.NEAR_LIMIT, f"It uses {', '.join(near)}: pods that need more wait."


def _used(what: str, key: ResourceKey, amount: int, ceiling: Ceiling) -> str:
    return f"{amount_text(key, amount)} {key} ({what} {ceiling_text(key, ceiling)})"


def _is_near(used: int, limit: Ceiling) -> bool:
    return bool(limit.most) and 10 * used >= 9 * (limit.most or 0)


def _figures(queue: Queue, world: WorldView, inputs: StatusInputs) -> dict[str, Any]:
    """The figures; maps without an entry are omitted.

    If an apply empties a map, the API server makes it null, which the definition refuses.
    """
    usage = world.ledger.of(queue.name)
    keys = world.facts.tree.shown_keys(queue.name, queue.shares)
    found = {
        "usage": (usage.usage, keys),
        "usageNonPreemptible": (usage.non_preemptible, keys),
        "requested": (usage.requested, keys),
        "share": (inputs.share, ()),
        "reclaimable": (reclaimable(queue, world), ()),
        "held": (world.held(queue.name), ()),
    }
    amounts = {
        name: _amounts(shown(charged, queue.name, world), listed)
        for name, (charged, listed) in found.items()
    }
    claims = {"owned": usage.owned, "sharedOut": usage.shared_out}
    if usage.orphans:
        claims["orphans"] = usage.orphans
    text = summary(shown(usage.usage, queue.name, world), queue)
    every: dict[str, Any] = {**amounts, "summary": text}
    figures = {name: found for name, found in every.items() if found}
    if inputs.waiting is not None:
        figures["waiting"] = inputs.waiting
    kept = {name: found for name, found in figures.items() if name not in inputs.without}
    return {**kept, "claims": claims}


def shown(found: Charges, name: QueueName, world: WorldView) -> Charges:
    """The amounts that mean something in a queue, see `QueueTree.shown_keys`."""
    keys = world.facts.tree.shown_keys(name, [key for key, _ in found])
    return Charges(tuple((key, found[key]) for key in keys))


def reclaimable(queue: Queue, world: WorldView) -> Charges:
    """The part of a queue's usage that is beyond its quota and used by preemptible pods."""
    usage = world.ledger.of(queue.name)
    found: dict[ResourceKey, int] = {}
    for key, used in usage.usage:
        share = queue.shares.get(key)
        quota = share.quota.most if share is not None else 0
        if quota is not None:
            found[key] = max(0, used - max(quota, usage.non_preemptible[key]))
    return charges(found)


def _amounts(found: Charges, listed: Iterable[ResourceKey]) -> dict[str, int | str]:
    """Amounts by name; entries that the queue lists are included with 0."""
    amounts = {**dict.fromkeys(listed, 0), **dict(found)}
    return {str(key): amount_value(key, amounts[key]) for key in sorted(amounts)}


def _since(before: Mapping[str, Any], status: str = _TRUE) -> str:
    """The time of the condition's last transition; "" if it does not have the status now."""
    return before.get("lastTransitionTime", "") if before.get("status") == status else ""


def _conditions_by_type(status: Mapping[str, Any]) -> dict[str, Mapping[str, Any]]:
    return {condition["type"]: condition for condition in status.get("conditions") or ()}


def _is_stored(status: Mapping[str, Any], stored: Mapping[str, Any]) -> bool:
    """Whether the status is stored already; conditions of other writers are ignored."""
    ours = {t: c for t, c in _conditions_by_type(stored).items() if t in list(QueueCondition)}
    return {**status, "conditions": _conditions_by_type(status)} == {
        **{name: value for name, value in stored.items() if name in (*status, *_FIGURES)},
        "conditions": ours,
    }
