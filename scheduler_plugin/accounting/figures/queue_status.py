"""The status of a Queue: what the ledger says of it, and what is odd about it.

    Accepted              always, since the definition refuses what could not be read
    ParentMissing         where the parent does not exist
    ParentCycle           where the path upwards leads into a cycle
    Unattributed          where pods name it that are charged to nobody
    QuotaUnmet            where pods wait within the quota, and nobody can make room
    QuotaExceedsDevices   where quotas have been more than the devices that there are for a while
    OverQuota             where more is used than is guaranteed
    NearLimit             where nine tenths of a limit are used, or more
    Unguarded             where other schedulers may give away what it lists, uncharged

A condition is True or not there. `requested` is the usage and what waiting pods ask for. `summary`
says once more what other fields say, for the columns of `kubectl get`.
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
    for_status,
)
from scheduler_plugin.objects.claims import ClassName
from scheduler_plugin.objects.devices.driver_guards import unguarded
from scheduler_plugin.objects.names import Queue, QueueCondition, QueueName
from scheduler_plugin.objects.queue_objects import parse_queue

PODS_NAMED = 3
"""How many pods a condition names."""

_LONGEST_MESSAGE = 32768
_FIGURES = (
    *("usage", "usageNonPreemptible", "requested"),
    *("share", "reclaimable", "held", "claims", "summary", "waiting"),
)
LATE_FIELDS = frozenset({"summary", "waiting"})
"""What definitions of earlier versions do not have: Helm leaves definitions as they are."""

_REASONS = {
    QueueCondition.ACCEPTED: "Valid",
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
class Besides:
    """What a status shows that does not follow from the world as it is at this moment.

    Attributes:
        share: What the queue would have if devices were given anew.
        waiting: How many pods wait; None for a status that does not say so.
        excess: What of its quotas is more than there is; None for nothing.
        without: Fields that the definition does not have.
    """

    share: Charges = NO_CHARGES
    waiting: int | None = None
    excess: Excess | None = None
    without: frozenset[str] = frozenset()


NOTHING_BESIDES = Besides()


@dataclass(frozen=True, slots=True)
class QueueObject:
    """A Queue as it is stored.

    Attributes:
        status: As the API returns it; {} where there is none.
    """

    queue: Queue
    status: Mapping[str, Any]


def queue_object(obj: JsonObject) -> QueueObject:
    """Parse a stored Queue."""
    return QueueObject(parse_queue(obj), obj.get("status") or {})


def queue_status(
    found: QueueObject, world: WorldView, now: datetime, besides: Besides = NOTHING_BESIDES
) -> JsonObject | None:
    """The status that a Queue should have; None where it has it.

    None, too, where the world knows another spec: "in force" must be so, and whichever of the two
    is behind will hear of it.
    """
    queue = found.queue
    if world.facts.tree.get(queue.name) != queue:
        return None
    before, generation = _conditions_by_type(found.status), queue.generation
    odd = [*world.facts.tree.conditions(queue.name), *_unattributed(queue.name, world)]
    if queue.name in world.unmet:
        odd.append((QueueCondition.QUOTA_UNMET, world.unmet[queue.name]))
    odd += _exceeding(besides.excess, before)
    odd += _stretched(queue, dict(world.ledger.of(queue.name).usage))
    odd += _unguarded(queue, world)
    conditions = [
        {
            "type": str(kind),
            "status": "True",
            "observedGeneration": generation,
            "lastTransitionTime": _since(before.get(kind, {})) or timestamp(now),
            "reason": _REASONS[kind],
            "message": message[:_LONGEST_MESSAGE],
        }
        for kind, message in ((QueueCondition.ACCEPTED, "The spec is in force."), *odd)
    ]
    figures = _figures(queue, world, besides)
    status = {"observedGeneration": generation, **figures, "conditions": conditions}
    return None if _is_stored(status, found.status) else status


def _unattributed(name: QueueName, world: WorldView) -> Iterator[tuple[QueueCondition, str]]:
    """Who says that he is of the queue, which may not be charged for him."""
    uids = world.ledger.shut_out(name)
    pods = filter(None, map(world.facts.pod, uids[:PODS_NAMED]))
    sentences = [unattributed_sentence(pod, world.facts) for pod in pods]
    if len(uids) > PODS_NAMED:
        sentences.append(f"{len(uids) - PODS_NAMED} more are like this.")
    if sentences:
        yield QueueCondition.UNATTRIBUTED, " ".join(sentences)


def _exceeding(
    excess: Excess | None, before: Mapping[str, Mapping[str, Any]]
) -> Iterator[tuple[QueueCondition, str]]:
    """Once it was told it stays as long as it is so, whoever leads since."""
    kind = QueueCondition.QUOTA_EXCEEDS_DEVICES
    if excess is not None and (excess.lasting or _since(before.get(kind, {}))):
        yield kind, excess.now


def _unguarded(queue: Queue, world: WorldView) -> Iterator[tuple[QueueCondition, str]]:
    """What it lists of drivers that no policy keeps other schedulers from."""
    facts = world.facts
    guarded, sentences = facts.settings.accounted_drivers, []
    for key in sorted(queue.shares):
        view = facts.catalog.class_named(ClassName(key))
        if view is not None:
            sentences.append(unguarded(view, facts.drivers_had_through(view.name), guarded))
    if found := " ".join(filter(None, sentences)):
        yield QueueCondition.UNGUARDED, found


def _stretched(
    queue: Queue, used: Mapping[ResourceKey, int]
) -> Iterator[tuple[QueueCondition, str]]:
    """What it has beyond its quotas, and where its limits are about to end it."""
    listed = [(key, share, used.get(key, 0)) for key, share in sorted(queue.shares.items())]
    over = [f"{n} {key} (quota {s.quota})" for key, s, n in listed if not s.quota.allows(n)]
    near = [f"{n} {key} (limit {s.most})" for key, s, n in listed if _is_near(n, s.most)]
    if over:
        what = "what is beyond the quota may be taken back for queues that are below theirs"
        yield QueueCondition.OVER_QUOTA, f"It uses {', '.join(over)}: {what}."
    if near:
        yield QueueCondition.NEAR_LIMIT, f"It uses {', '.join(near)}: pods that need more wait."


def _is_near(used: int, limit: Ceiling) -> bool:
    return bool(limit.most) and 10 * used >= 9 * (limit.most or 0)


def _figures(queue: Queue, world: WorldView, besides: Besides) -> dict[str, Any]:
    """Figures of no class at all are left out.

    Where an apply empties a map, the API server makes it null, which the definition refuses.
    """
    usage = world.ledger.of(queue.name)
    keys = queue.shares.keys()
    amounts = {
        "usage": _amounts(usage.usage, keys),
        "usageNonPreemptible": _amounts(usage.non_preemptible, keys),
        "requested": _amounts(usage.requested, keys),
        "share": _amounts(besides.share, ()),
        "reclaimable": _amounts(reclaimable(queue, world), ()),
        "held": _amounts(world.held(queue.name), ()),
    }
    claims = {"owned": usage.owned, "sharedOut": usage.shared_out}
    if usage.orphans:
        claims["orphans"] = usage.orphans
    told: dict[str, Any] = {**amounts, "summary": summary(amounts["usage"], queue)}
    figures = {name: found for name, found in told.items() if found}
    if besides.waiting is not None:
        figures["waiting"] = besides.waiting
    kept = {name: found for name, found in figures.items() if name not in besides.without}
    return {**kept, "claims": claims}


def reclaimable(queue: Queue, world: WorldView) -> Charges:
    """What is beyond a queue's quota, as far as preemptible pods have it."""
    usage = world.ledger.of(queue.name)
    found: dict[ResourceKey, int] = {}
    for key, used in usage.usage:
        share = queue.shares.get(key)
        quota = share.quota.most if share is not None else 0
        if quota is not None:
            found[key] = max(0, used - max(quota, usage.non_preemptible[key]))
    return charges(found)


def _amounts(found: Charges, listed: Iterable[ResourceKey]) -> dict[str, int]:
    """By class; what the queue lists is shown with 0, too."""
    amounts = {**dict.fromkeys(listed, 0), **dict(found)}
    return {key: for_status(amounts[key]) for key in sorted(amounts)}


def _since(before: Mapping[str, Any]) -> str:
    """The time of its last transition, which stays while the condition does; "" for now."""
    return before.get("lastTransitionTime", "") if before.get("status") == "True" else ""


def _conditions_by_type(status: Mapping[str, Any]) -> dict[str, Mapping[str, Any]]:
    return {condition["type"]: condition for condition in status.get("conditions") or ()}


def _is_stored(status: Mapping[str, Any], stored: Mapping[str, Any]) -> bool:
    """Whether all of it is there already; other writers' conditions are theirs."""
    ours = {t: c for t, c in _conditions_by_type(stored).items() if t in list(QueueCondition)}
    return {**status, "conditions": _conditions_by_type(status)} == {
        **{name: value for name, value in stored.items() if name in (*status, *_FIGURES)},
        "conditions": ours,
    }
