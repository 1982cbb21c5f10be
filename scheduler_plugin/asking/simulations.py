"""Simulations: production's verdicts and evictions for a changed cluster.

    Snapshot ──changes──► Snapshot ──► two worlds ──► differences

Nothing is written. Each given pod is judged as if the given pods before it had been admitted; each
pod that waits already is judged as if it came next.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import datetime

from scheduler_plugin.accounting.queues.name_conflicts import name_conflicts
from scheduler_plugin.accounting.world import World
from scheduler_plugin.asking.simulated_changes import (
    Changes,
    NoChangeError,
    pod_names,
    with_pods,
    with_queues,
)
from scheduler_plugin.asking.simulated_losses import LostDevice, without_devices
from scheduler_plugin.asking.snapshots import Snapshot
from scheduler_plugin.asking.worlds import world_of
from scheduler_plugin.judging.gangs import judge_waiting, waiting_refusal
from scheduler_plugin.judging.verdicts import Admitted, Refused, assume
from scheduler_plugin.objects.amounts import ResourceKey
from scheduler_plugin.objects.names import NO_QUEUE, QueueName
from scheduler_plugin.objects.pods import PodView
from scheduler_plugin.reclaiming.targets import Targets
from scheduler_plugin.viewing.free_devices import FreeDevices, free_now
from scheduler_plugin.viewing.measured_rows import figure_text
from scheduler_plugin.viewing.queue_rows import QueueRow, queue_rows
from scheduler_plugin.viewing.why import ADMITTED, NEEDS_NOTHING, decision, without_refusal
from scheduler_plugin.waiting.admissions import WaitReason


@dataclass(frozen=True, slots=True, kw_only=True)
class Charged:
    """What one queue would be charged in addition for a pod; see `measured_rows`."""

    queue: QueueName
    device_class: ResourceKey
    added: int
    what: str


@dataclass(frozen=True, slots=True, kw_only=True)
class SimulatedPod:
    """The verdict on a given pod.

    Attributes:
        reason: `Admitted`, `NoDeviceFree`, or the reason of the refusal.
        evicted: Pods that would be evicted for it.
    """

    pod: str
    reason: str
    sentence: str
    charged: tuple[Charged, ...] = ()
    evicted: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class WaitingChange:
    """A pod that waits already and whose reason, sentence or evictions would change."""

    pod: str
    before: str
    after: str
    sentence: str
    evicted: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class QueueChange:
    """A queue and class whose figures would change; None if the queue does not exist.

    Attributes:
        problem: A sentence if usage would be above the limit; running pods stay.
    """

    before: QueueRow | None
    after: QueueRow | None
    problem: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Simulation:
    """All that would change.

    Attributes:
        notes: What is not known, as sentences.
    """

    pods: tuple[SimulatedPod, ...] = ()
    waiting: tuple[WaitingChange, ...] = ()
    queues: tuple[QueueChange, ...] = ()
    devices: tuple[LostDevice, ...] = ()
    notes: tuple[str, ...] = ()


def with_changes(snapshot: Snapshot, changes: Changes, now: datetime) -> Snapshot:
    """The snapshot with the changes.

    Raises:
        NoChangeError: If the changes are not valid.
    """
    queued = with_queues(snapshot, changes.queues)
    fewer, _ = without_devices(queued, world_of(snapshot), changes.without_devices)
    return with_pods(fewer, changes, now)


def simulate(snapshot: Snapshot, changes: Changes, now: datetime) -> Simulation:
    """Simulate changes at a moment.

    Raises:
        NoChangeError: If the changes are not valid.
    """
    before = world_of(snapshot)
    queued = with_queues(snapshot, changes.queues)
    _check_names(before, queued)
    fewer, lost = without_devices(queued, before, changes.without_devices)
    requested = with_pods(fewer, changes, now)
    after, names = world_of(requested), pod_names(changes)
    pods = [after.facts.pod_named(*name) for name in names]
    given = [pod for pod in pods if pod is not None]
    waiting = tuple(_waiting(before, world_of(fewer), now)) if fewer is not snapshot else ()
    free = free_now(after)
    simulated = tuple(_simulated(pod, after, free, now) for pod in given)
    none = [f"{ns}/{name}" for (ns, name), pod in zip(names, pods, strict=True) if pod is None]
    return Simulation(
        pods=(*simulated, *map(_needs_nothing, none)),
        waiting=waiting,
        queues=tuple(_queue_changes(before, after)),
        devices=lost,
    )


def _needs_nothing(pod: str) -> SimulatedPod:
    return SimulatedPod(pod=pod, reason=ADMITTED, sentence=NEEDS_NOTHING)


def _simulated(pod: PodView, world: World, free: FreeDevices, now: datetime) -> SimulatedPod:
    name, found = _named(pod), judge_waiting(pod, world)
    if isinstance(found, Refused):
        return _refused(pod, found, world, now)
    if (short := free.take([other for other, _ in found.admitted])) is not None:
        sentence = f"All queue rules pass. {short.sentence}"
        return SimulatedPod(pod=name, reason=WaitReason.NO_DEVICE_FREE, sentence=sentence)
    charged: list[Charged] = []
    for other, admitted in found.admitted:
        charged.extend(_charged(other, admitted, world))
        assume(other, admitted, world, now)
    sentence = "All queue rules pass; kube-scheduler chooses a node."
    if len(found.admitted) > 1:
        sentence = f"{len(found.admitted)} pods of its group are admitted together. {sentence}"
    return SimulatedPod(pod=name, reason=ADMITTED, sentence=sentence, charged=tuple(charged))


def _check_names(before: World, queued: Snapshot) -> None:
    """Raise NoChangeError if a name would count two things that it does not count now."""
    were = set(name_conflicts(before.facts.tree))
    if new := [said for said in name_conflicts(world_of(queued).facts.tree) if said not in were]:
        raise NoChangeError(" ".join(new))


def _refused(pod: PodView, found: Refused, world: World, now: datetime) -> SimulatedPod:
    decided, sentence = decision(world, pod, now), found.sentence
    evicted: tuple[str, ...] = ()
    if isinstance(decided, Targets):
        sentence, evicted = f"{sentence} {decided.sentence}", tuple(map(_named, decided.pods))
    return SimulatedPod(
        pod=_named(pod), reason=str(found.reason), sentence=sentence, evicted=evicted
    )


def _charged(pod: PodView, admitted: Admitted, world: World) -> Iterator[Charged]:
    additions = [(use.owner, use.adds, str(use.claim)) for use in admitted.claims]
    for queue, adds, what in (*additions, (admitted.queue, admitted.requests, str(pod))):
        for key in world.facts.tree.shown_keys(queue, [key for key, _ in adds]):
            yield Charged(queue=queue, device_class=key, added=adds[key], what=what)


def _named(pod: PodView) -> str:
    return f"{pod.namespace}/{pod.name}"


def _waiting(before: World, after: World, now: datetime) -> Iterator[WaitingChange]:
    """The waiting pods whose reason, sentence or evictions would change."""
    devices_before, devices_after = free_now(before), free_now(after)
    for pod in sorted(before.facts.pods(), key=_named):
        other = after.facts.pod(pod.uid)
        if other is None or not pod.may_be_bound or not pod.may_use_devices:
            continue
        was = _verdict(pod, before, devices_before, now)
        now_is = _verdict(other, after, devices_after, now)
        if was != now_is:
            reason, sentence, evicted = now_is
            yield WaitingChange(
                pod=_named(pod), before=was[0], after=reason, sentence=sentence, evicted=evicted
            )


def _verdict(
    pod: PodView, world: World, free: FreeDevices, now: datetime
) -> tuple[str, str, tuple[str, ...]]:
    refused = waiting_refusal(pod, world)
    if refused is None:
        return (*without_refusal(pod, free), ())
    decided = decision(world, pod, now)
    evicted = tuple(map(_named, decided.pods)) if isinstance(decided, Targets) else ()
    return str(refused.reason), refused.sentence, evicted


def _queue_changes(before: World, after: World) -> Iterator[QueueChange]:
    """The rows that would change; usage includes the assumptions of the given pods."""
    was = {(row.queue, row.device_class): row for row in queue_rows(before)}
    now = {(row.queue, row.device_class): _counting(after, row) for row in queue_rows(after)}
    for key in sorted({*was, *now}):
        old, new = was.get(key), now.get(key)
        if old != new:
            yield QueueChange(before=old, after=new, problem=_over(new))


def _counting(world: World, row: QueueRow) -> QueueRow:
    more = world.assumptions.usage.amount(row.queue, row.device_class)
    return replace(row, usage=row.usage + more) if row.device_class else row


def _over(row: QueueRow | None) -> str:
    if row is None or row.queue == NO_QUEUE or row.limit is None or row.usage <= row.limit:
        return ""
    more = figure_text(row.device_class, row.usage - row.limit)
    return f"Usage is {more} above the limit: running pods stay, and no pod is added."
