"""Inadmissible classes, and the limiting quota of each: usage has to fall, or the quota to rise.

A pod that would exceed a limit or a quota is refused at one *limiting quota*: a queue, a resource
and a kind of ceiling. While that has no room for the pod, no verdict is needed, whatever else
changes. The check costs a few sums for each limiting quota, and not for each waiting pod.
"""

from __future__ import annotations

from dataclasses import dataclass

from scheduler_plugin.accounting.world_views import WorldView
from scheduler_plugin.judging.cases import Case, case_of
from scheduler_plugin.judging.ceilings import Overrun, limit_overruns, non_preemptible_overruns
from scheduler_plugin.judging.gangs import GangAdmitted, GangRefused
from scheduler_plugin.judging.verdicts import Refused
from scheduler_plugin.objects.amounts import ResourceKey
from scheduler_plugin.objects.names import QueueName, Reason, Share
from scheduler_plugin.objects.pods import PodView
from scheduler_plugin.waiting.classes.pod_classes import ClassKey

CEILINGS = (Reason.OVER_LIMIT, Reason.NON_PREEMPTIBLE_OVER_QUOTA)


@dataclass(frozen=True, slots=True)
class LimitingQuota:
    """A limit, or a quota for non-preemptible usage, that has no room.

    Attributes:
        place: The queue that has the limit or quota.
        key: The resource.
        reason: The kind of ceiling: `OVER_LIMIT` or `NON_PREEMPTIBLE_OVER_QUOTA`.
    """

    place: QueueName
    key: ResourceKey
    reason: Reason

    def room(self, world: WorldView) -> int | None:
        """The amount that still fits; None for any amount."""
        share = world.facts.tree.share(self.place, self.key) or Share()
        if self.reason is Reason.OVER_LIMIT:
            most, charged, assumed = share.most.most, world.ledger.usage, world.assumptions.usage
        else:
            most = share.quota.most
            charged, assumed = world.ledger.non_preemptible, world.assumptions.non_preemptible
        if most is None:
            return None
        return most - charged.amount(self.place, self.key) - assumed.amount(self.place, self.key)


class InadmissibleClasses:
    """The inadmissible classes by limiting quota, each with the amount that it needs there."""

    def __init__(self) -> None:
        self._pod_classes: dict[LimitingQuota, dict[ClassKey, int]] = {}
        self._limiting_quotas: dict[ClassKey, LimitingQuota] = {}

    def put(self, class_key: ClassKey, limiting_quota: LimitingQuota, needed: int) -> None:
        self.remove(class_key)
        self._pod_classes.setdefault(limiting_quota, {})[class_key] = needed
        self._limiting_quotas[class_key] = limiting_quota

    def remove(self, class_key: ClassKey) -> None:
        limiting_quota = self._limiting_quotas.pop(class_key, None)
        if limiting_quota is not None:
            del self._pod_classes[limiting_quota][class_key]
            if not self._pod_classes[limiting_quota]:
                del self._pod_classes[limiting_quota]

    def has(self, class_key: ClassKey) -> bool:
        return class_key in self._limiting_quotas

    def limiting_quotas(self) -> list[LimitingQuota]:
        """The limiting quotas of all inadmissible classes."""
        return list(self._pod_classes)

    def with_room(self, limiting_quota: LimitingQuota, world: WorldView) -> list[ClassKey]:
        """The classes to requeue: there is room for the head of each by now."""
        pod_classes, room = self._pod_classes.get(limiting_quota, {}), limiting_quota.room(world)
        if room is not None and room <= 0:
            return []
        return [
            class_key for class_key, needed in pod_classes.items() if room is None or needed <= room
        ]


def limiting_quota_of(
    pod: PodView, refused: Refused, world: WorldView
) -> tuple[LimitingQuota, int] | None:
    """The limiting quota of a refused pod, and the amount that it needs there.

    None where the pod was refused for another reason, or its alternatives at different ones.
    """
    if refused.reason not in CEILINGS:
        return None
    case = case_of(pod, world.facts.claims_of(pod), world, at_bind=False)
    overrun = _overrun(case, refused.reason)
    if overrun is None:
        return None
    return LimitingQuota(overrun.place, overrun.key, refused.reason), overrun.more


def _overrun(case: Case, reason: Reason) -> Overrun | None:
    found = limit_overruns if reason is Reason.OVER_LIMIT else non_preemptible_overruns
    return next((overrun for overrun, _ in found(case)), None)


def gang_shortfall(
    found: GangAdmitted | GangRefused, world: WorldView
) -> tuple[LimitingQuota, int] | None:
    """The limiting quota of a gang, and its shortfall there, with part of the gang assumed."""
    if not isinstance(found, GangRefused) or found.pod is None or found.alone is None:
        return None
    there = limiting_quota_of(found.pod, found.alone, world)
    return there and (there[0], there[1] - (there[0].room(world) or 0))


def gang_need(
    lacks: tuple[LimitingQuota, int] | None, world: WorldView
) -> tuple[LimitingQuota, int] | None:
    """The same with the whole amount that the gang needs, with nothing of it assumed."""
    return lacks and (lacks[0], lacks[1] + (lacks[0].room(world) or 0))
