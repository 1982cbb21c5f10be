"""Why a pod runs or waits: its verdict, with the figures that the rules read."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from scheduler_plugin.accounting.world_views import WorldView
from scheduler_plugin.judging.ceilings import usage_added
from scheduler_plugin.judging.gangs import waiting_refusal
from scheduler_plugin.judging.named_holders import MayName, anyone
from scheduler_plugin.judging.rules.table import BY_REASON
from scheduler_plugin.judging.verdicts import Refused, deciding_case
from scheduler_plugin.objects.amounts import NO_CHARGES, Charges, ResourceKey
from scheduler_plugin.objects.claims import ClaimView
from scheduler_plugin.objects.measures import is_class
from scheduler_plugin.objects.names import NO_QUEUE, QueueName
from scheduler_plugin.objects.pods import PodView, why_not_ours
from scheduler_plugin.reclaiming.cycles import Cycle
from scheduler_plugin.reclaiming.expected_charges import NoCandidates
from scheduler_plugin.reclaiming.placements import LimitsOnly
from scheduler_plugin.reclaiming.targets import Decision, Targets
from scheduler_plugin.reclaiming.victims.victims import NONE_EXCLUDED
from scheduler_plugin.viewing.claim_costs import cost_sentence
from scheduler_plugin.viewing.device_remedies import device_remedies
from scheduler_plugin.viewing.free_devices import FreeDevices, free_now
from scheduler_plugin.viewing.instance_rows import instance_of
from scheduler_plugin.viewing.rules import RuleRow, rule_rows
from scheduler_plugin.waiting.admissions import WaitReason

RUNNING, ENDED, ADMITTED = "Running", "Ended", "Admitted"

HAS_ENDED = "The pod ended and uses no device."
NEEDS_NOTHING = "The pod requests no accounted device, so queue rules do not apply."

NO_NODE = (
    "kube-scheduler found no node for the pod in its last attempt: the pod's condition PodScheduled"
    " says why."
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Figure:
    """A queue that would be charged, or one above it, and what is added; see `measured_rows`."""

    queue: QueueName
    device_class: ResourceKey
    usage: int
    added: int
    quota: int | None
    limit: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Why:
    """Why a pod runs or waits.

    Attributes:
        reason: The verdict's reason; without a refusal `Running`, `Ended`, `OtherScheduler`,
            `NoDeviceFree`, `Unschedulable`, else `Admitted`.
        queue: The pod's queue; "" if it has none.
        claims: A sentence for each of its claims, with the queue that is charged.
        figures: From the charged queue up to the root; empty for a running pod.
        rules: Each rule, and whether it passes; empty for a running pod, or without devices.
        remedies: What would have to change for this reason; one of them is enough.
        reclaim: Which pods would be evicted for it, or why none; "" if no eviction is considered.
        told: What its conditions and Events say.
    """

    pod: str
    reason: str
    sentence: str
    queue: QueueName
    claims: tuple[str, ...]
    figures: tuple[Figure, ...] = ()
    rules: tuple[RuleRow, ...] = ()
    remedies: tuple[str, ...] = ()
    reclaim: str = ""
    told: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Viewer:
    """What the viewer of an answer may see.

    Attributes:
        free: The devices at a moment; None to look at all devices now.
        may_name: Whether claims and pods of a namespace may be named to the viewer.
    """

    free: FreeDevices | None = None
    may_name: MayName = anyone


ANYONE = Viewer()


def why(
    world: WorldView,
    namespace: str,
    name: str,
    now: datetime | None = None,
    viewer: Viewer = ANYONE,
) -> Why | None:
    """Why a pod runs or waits; None if no such pod exists, or it has nothing to do with devices.

    Args:
        world: All that is known.
        namespace: The pod's namespace.
        name: The pod's name.
        now: The moment; without it victims are not looked for, which may take long.
        viewer: What is known already, and what the viewer may see.
    """
    pod = world.facts.pod_named(namespace, name)
    if pod is None:
        return None
    claims = world.facts.claims_of(pod)
    if pod.ended:
        return _why(world, pod, claims, ENDED, HAS_ENDED)
    if pod.is_bound:
        return _why(world, pod, claims, RUNNING, is_running(pod.node))
    return _why_waiting(_Request(world, now, viewer), pod, claims)


def is_running(node: str) -> str:
    """The sentence for a pod that runs on a node."""
    return f"The pod was bound to {node}; running pods are not judged again."


def _why(
    world: WorldView,
    pod: PodView,
    claims: tuple[ClaimView, ...],
    reason: str,
    sentence: str,
    **more: Any,
) -> Why:
    return Why(
        pod=f"{pod.namespace}/{pod.name}",
        reason=reason,
        sentence=sentence,
        queue=world.facts.queue_of(pod),
        claims=tuple(_paid(world, claim) for claim in claims),
        **more,
    )


@dataclass(frozen=True, slots=True)
class _Request:
    """The arguments of `why`."""

    world: WorldView
    now: datetime | None
    viewer: Viewer


def _why_waiting(request: _Request, pod: PodView, claims: tuple[ClaimView, ...]) -> Why:
    world, now, may_name = request.world, request.now, request.viewer.may_name
    case = deciding_case(pod, claims, world)
    refused = waiting_refusal(pod, world)
    if refused is not None:
        reason, sentence = str(refused.reason), refused.sentence
        ways = tuple(BY_REASON[refused.reason].remedies(case, may_name))
    else:
        reason, sentence, ways = _unrefused(request, pod)
    return _why(
        world,
        pod,
        claims,
        reason,
        sentence,
        figures=tuple(_figures(world, pod, claims)),
        rules=rule_rows(case, may_name) if case.may_be_charged or refused else (),
        remedies=ways,
        reclaim=_reclaim(world, pod, refused, now) if now is not None and refused else "",
    )


def _unrefused(request: _Request, pod: PodView) -> tuple[str, str, tuple[str, ...]]:
    """Reason, sentence and remedies of a pod for which all queue rules pass."""
    world = request.world
    if why_not := why_not_ours(pod, world.facts.settings):
        ours = " or ".join(sorted(world.facts.settings.scheduler_names))
        way = f"Delete the pod and create it with spec.schedulerName: {ours}."
        return WaitReason.OTHER_SCHEDULER, f"All queue rules pass. {why_not}", (way,)
    free = request.viewer.free or free_now(world)
    reason, sentence = without_refusal(pod, free)
    short = free.shortage(pod)
    ways = (
        device_remedies(pod, short, free, world, request.viewer.may_name)
        if short is not None
        else ()
    )
    return reason, sentence, tuple(ways)


def without_refusal(pod: PodView, free: FreeDevices) -> tuple[str, str]:
    """Reason and sentence of a pod for which all queue rules pass, by the devices that are free."""
    short = free.shortage(pod)
    if short is not None:
        return WaitReason.NO_DEVICE_FREE, f"All queue rules pass. {short.sentence}"
    if pod.unschedulable and not pod.gates:
        return WaitReason.UNSCHEDULABLE, f"All queue rules pass. {NO_NODE}"
    return ADMITTED, _admitted(pod)


def decision(world: WorldView, pod: PodView, now: datetime) -> Decision:
    """The victims for a waiting pod, by the limits of its queues alone."""
    return Cycle(world, now, NONE_EXCLUDED, LimitsOnly()).serve(pod)


def _reclaim(world: WorldView, pod: PodView, refused: Refused, now: datetime) -> str:
    """The sentence about evictions; "" if it is that of the refusal."""
    found = decision(world, pod, now)
    if isinstance(found, Targets | NoCandidates):
        return "" if found.sentence == refused.sentence else found.sentence
    return "No eviction is needed: the pods that use the missing devices are terminating."


def _admitted(pod: PodView) -> str:
    gates = f" The pod waits at its scheduling gates: {', '.join(pod.gates)}." if pod.gates else ""
    return f"All queue rules pass; kube-scheduler looks for a node.{gates}"


def _paid(world: WorldView, claim: ClaimView) -> str:
    entry = world.ledger.claim(claim.uid)
    if entry is None:
        return f"{claim} is not accounted."
    state = "allocated" if claim.is_allocated else "not allocated"
    payer = f"charged to {entry.owner}" if entry.owner else "charged to no queue"
    troubles = f"{_absent_devices(world, claim)}{_tainted_devices(world, claim)}"
    return f"{claim} is {state} and {payer}.{cost_sentence(world, claim, entry)}{troubles}"


def _absent_devices(world: WorldView, claim: ClaimView) -> str:
    """The sentence about devices that no node sees, after a blank; "" for none."""
    found = []
    for device in claim.devices:
        instance = instance_of(device, world.facts.catalog.instance_named)
        if instance is not None and not instance.nodes:
            since = f" since {instance.offline_since}" if instance.offline_since else ""
            found.append(f"{device.name}{since}")
    return f" Absent devices, which no node sees: {', '.join(found)}." if found else ""


def _tainted_devices(world: WorldView, claim: ClaimView) -> str:
    """The sentence about devices that a DeviceTaintRule selects, after a blank; "" for none."""
    rules = world.facts.catalog.taint_rules
    found = [f"{d.name} by {rule}" for d in claim.devices for rule in rules.selecting(*d)]
    return f" Tainted devices: {', '.join(found)}." if found else ""


def _figures(world: WorldView, pod: PodView, claims: tuple[ClaimView, ...]) -> Iterator[Figure]:
    added: dict[QueueName, Charges] = {}
    for _, owner, cost in usage_added(deciding_case(pod, claims, world)):
        if owner != NO_QUEUE and cost:
            added[owner] = added.get(owner, NO_CHARGES).plus(cost)
    for owner, cost in added.items():
        for key in world.facts.tree.shown_keys(owner, [key for key, _ in cost]):
            for name in world.facts.tree.path(owner):
                share = world.facts.tree.share(name, key)
                if share is None and not is_class(key):
                    continue
                yield Figure(
                    queue=name,
                    device_class=key,
                    usage=world.ledger.of(name).usage[key],
                    added=cost[key],
                    quota=share.quota.most if share else 0,
                    limit=share.limit.most if share else None,
                )
