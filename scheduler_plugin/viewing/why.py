"""Why a pod runs, or does not: the verdict on it, with the figures that it looked at."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from scheduler_plugin.accounting.world_views import WorldView
from scheduler_plugin.judging.cases import case_of
from scheduler_plugin.judging.ceilings import usage_added
from scheduler_plugin.judging.gangs import waiting_refusal
from scheduler_plugin.judging.named_holders import MayName, anyone
from scheduler_plugin.judging.rules.table import BY_REASON
from scheduler_plugin.judging.verdicts import Refused
from scheduler_plugin.objects.amounts import NO_CHARGES, Charges
from scheduler_plugin.objects.claims import ClaimView
from scheduler_plugin.objects.names import NO_QUEUE, QueueName
from scheduler_plugin.objects.pods import PodView, why_not_ours
from scheduler_plugin.reclaiming.cycles import Cycle
from scheduler_plugin.reclaiming.decisions import Decision, Take
from scheduler_plugin.reclaiming.supplies import LimitsAlone
from scheduler_plugin.reclaiming.victims.victims import NOBODY_AWAY
from scheduler_plugin.reclaiming.wants import Nobody
from scheduler_plugin.viewing.device_remedies import device_remedies
from scheduler_plugin.viewing.free_devices import FreeDevices, free_now
from scheduler_plugin.viewing.instance_rows import instance_of
from scheduler_plugin.viewing.rules import RuleRow, rule_rows
from scheduler_plugin.waiting.decisions import Wait

RUNNING, ENDED, ADMITTED = "Running", "Ended", "Admitted"

HAS_ENDED = "It ended, and uses nothing."
NEEDS_NOTHING = "It asks for no devices, and no rule of queues looks at it."

NO_NODE = (
    "kube-scheduler found no node for it when it tried last: the pod's condition PodScheduled says"
    " why."
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Figure:
    """A queue on the path of who would be charged, and what the pod adds to it of one class."""

    queue: QueueName
    device_class: str
    usage: int
    added: int
    quota: int | None
    limit: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Why:
    """What is to be said of a pod.

    Attributes:
        reason: Of the verdict. Where there is no refusal: `Running`, `Ended`, `OtherScheduler`,
            `NoDeviceFree`, `Unschedulable`, else `Admitted`.
        queue: The pod's; "" where it has none.
        claims: Each of its claims with who pays for it.
        figures: From who is charged up to the root; none once it runs.
        rules: Each rule, whether it holds; none once it runs, or where it asks for no device.
        remedies: What would have to change; any one does for this reason. Empty where nothing has.
        reclaim: Which pods would be evicted for it, or why none; "" where that is no question.
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
    """For whom it is looked.

    Attributes:
        free: The devices; None to look at all of them now.
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
    """None where there is no such pod, or none that has to do with devices.

    Args:
        world: All that is known.
        namespace: Of the pod.
        name: Of the pod.
        now: Without it it is not looked who would be evicted for the pod, which may take long.
        viewer: What is known already, and what may be told.
    """
    pod = world.facts.pod_named(namespace, name)
    if pod is None:
        return None
    claims = world.facts.claims_of(pod)
    if pod.ended:
        return _why(world, pod, claims, ENDED, HAS_ENDED)
    if pod.is_bound:
        return _why(world, pod, claims, RUNNING, is_running(pod.node))
    return _why_waiting(_Asked(world, now, viewer), pod, claims)


def is_running(node: str) -> str:
    """What is said of a pod that runs on a node."""
    return f"It was bound to {node}; a pod that runs is not judged again."


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
class _Asked:
    """See `why`."""

    world: WorldView
    now: datetime | None
    viewer: Viewer


def _why_waiting(asked: _Asked, pod: PodView, claims: tuple[ClaimView, ...]) -> Why:
    world, now, may_name = asked.world, asked.now, asked.viewer.may_name
    case = case_of(pod, claims, world, at_bind=False)
    refused = waiting_refusal(pod, world)
    if refused is not None:
        reason, sentence = str(refused.reason), refused.sentence
        ways = tuple(BY_REASON[refused.reason].remedies(case, may_name))
    else:
        reason, sentence, ways = _unrefused(asked, pod)
    return _why(
        world,
        pod,
        claims,
        reason,
        sentence,
        figures=tuple(_figures(world, pod, claims)),
        rules=rule_rows(case, may_name) if case.asks or refused else (),
        remedies=ways,
        reclaim=_reclaim(world, pod, refused, now) if now is not None and refused else "",
    )


def _unrefused(asked: _Asked, pod: PodView) -> tuple[str, str, tuple[str, ...]]:
    """Reason, sentence and remedies of a pod that no rule of queues keeps."""
    world = asked.world
    if why_not := why_not_ours(pod, world.facts.settings):
        ours = " or ".join(sorted(world.facts.settings.scheduler_names))
        way = f"Create the pod anew with spec.schedulerName: {ours}."
        return Wait.OTHER_SCHEDULER, f"No rule of queues keeps it. {why_not}", (way,)
    free = asked.viewer.free or free_now(world)
    reason, sentence = without_refusal(pod, free)
    short = free.shortage(pod)
    ways = (
        device_remedies(pod, short, free, world, asked.viewer.may_name) if short is not None else ()
    )
    return reason, sentence, tuple(ways)


def without_refusal(pod: PodView, free: FreeDevices) -> tuple[str, str]:
    """Reason and sentence for a pod that no rule of queues keeps, by what devices are free."""
    short = free.shortage(pod)
    if short is not None:
        return Wait.NO_DEVICE_FREE, f"No rule of queues keeps it. {short.sentence}"
    if pod.unschedulable and not pod.gates:
        return Wait.UNSCHEDULABLE, f"No rule of queues keeps it. {NO_NODE}"
    return ADMITTED, _admitted(pod)


def decision(world: WorldView, pod: PodView, now: datetime) -> Decision:
    """Who would be evicted for a waiting pod, by its queues' limits alone."""
    return Cycle(world, now, NOBODY_AWAY, LimitsAlone()).serve(pod)


def _reclaim(world: WorldView, pod: PodView, refused: Refused, now: datetime) -> str:
    """Of what another rule refuses no pod goes, and the refusal says why."""
    found = decision(world, pod, now)
    if isinstance(found, Take | Nobody):
        return "" if found.sentence == refused.sentence else found.sentence
    return "What it lacks is about to be free: the pods that use it are terminating."


def _admitted(pod: PodView) -> str:
    gates = f" It waits at {', '.join(pod.gates)}." if pod.gates else ""
    return f"No rule of queues keeps it; kube-scheduler looks for a node.{gates}"


def _paid(world: WorldView, claim: ClaimView) -> str:
    entry = world.ledger.claim(claim.uid)
    if entry is None:
        return f"{claim} is not accounted."
    state = "allocated" if claim.is_allocated else "not allocated"
    payer = f"charged to {entry.owner}" if entry.owner else "charged to no queue"
    return f"{claim} is {state} and {payer}.{_away(world, claim)}"


def _away(world: WorldView, claim: ClaimView) -> str:
    """Which of its devices no node sees, as a sentence after a blank; "" for none."""
    found = []
    for device in claim.devices:
        instance = instance_of(device, world.facts.catalog.instance_named)
        if instance is not None and not instance.nodes:
            since = f" since {instance.offline_since}" if instance.offline_since else ""
            found.append(f"{device.name}{since}")
    return f" Away, seen by no node: {', '.join(found)}." if found else ""


def _figures(world: WorldView, pod: PodView, claims: tuple[ClaimView, ...]) -> Iterator[Figure]:
    added: dict[QueueName, Charges] = {}
    for _, owner, cost in usage_added(case_of(pod, claims, world, at_bind=False)):
        if owner != NO_QUEUE and cost:
            added[owner] = added.get(owner, NO_CHARGES).plus(cost)
    for owner, cost in added.items():
        for key, amount in cost:
            for name in world.facts.tree.path(owner):
                queue = world.facts.tree.get(name)
                share = queue.shares.get(key) if queue else None
                yield Figure(
                    queue=name,
                    device_class=key,
                    usage=world.ledger.of(name).usage[key],
                    added=amount,
                    quota=share.quota.most if share else 0,
                    limit=share.limit.most if share else None,
                )
