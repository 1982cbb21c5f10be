"""What if: the same verdicts and evictions as in production, about a cluster that is changed.

    Snapshot ──changes──► Snapshot ──► two worlds ──► what differs

Nothing is written anywhere. Of pods that are given, each is judged as if those before it had been
admitted; those that wait already, each as if it came next.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime

from driver.api import timestamp
from scheduler_plugin.accounting.world import World
from scheduler_plugin.asking.snapshots import Snapshot, changed, with_objects
from scheduler_plugin.asking.worlds import world_of
from scheduler_plugin.judging.gangs import judge_waiting, waiting_refusal
from scheduler_plugin.judging.verdicts import Admitted, Refused, assume
from scheduler_plugin.models import queue_problems
from scheduler_plugin.objects.amounts import ResourceKey
from scheduler_plugin.objects.fields import JsonObject
from scheduler_plugin.objects.names import NO_QUEUE, QueueName
from scheduler_plugin.objects.pods import PodView
from scheduler_plugin.objects.words import number_of
from scheduler_plugin.reclaiming.decisions import Take
from scheduler_plugin.viewing.device_rows import DeviceRow, device_rows
from scheduler_plugin.viewing.free_devices import FreeDevices, free_now
from scheduler_plugin.viewing.queue_rows import QueueRow, queue_rows
from scheduler_plugin.viewing.why import ADMITTED, decision, without_refusal
from scheduler_plugin.waiting.decisions import Wait

KINDS = {
    "Pod": "pods",
    "ResourceClaim": "resourceclaims",
    "ResourceClaimTemplate": "resourceclaimtemplates",
}


class NoChangeError(ValueError):
    """Raised where what is to be simulated makes no sense."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Changes:
    """What is to be different.

    Attributes:
        objects: Pods, and claims and templates that come with them, as in a manifest.
        queues: Queues as they would be.
        without_devices: Names of devices or Instances that would be gone.
        namespace: Of objects that name none.
    """

    objects: Sequence[JsonObject] = ()
    queues: Sequence[JsonObject] = ()
    without_devices: Sequence[str] = ()
    namespace: str = "default"


@dataclass(frozen=True, slots=True, kw_only=True)
class Charged:
    """What one queue would be charged more of one class for a pod."""

    queue: QueueName
    device_class: str
    added: int
    what: str


@dataclass(frozen=True, slots=True, kw_only=True)
class SimulatedPod:
    """A pod that is given, and what would become of it.

    Attributes:
        reason: `Admitted`, `NoDeviceFree`, or that of the refusal.
        evicted: Pods that would be evicted for it.
    """

    pod: str
    reason: str
    sentence: str
    charged: tuple[Charged, ...] = ()
    evicted: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class WaitingChange:
    """A pod that waits already and would be told something else."""

    pod: str
    before: str
    after: str
    sentence: str
    evicted: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class QueueChange:
    """A queue and class whose figures would differ; None for the queue where it is not there.

    Attributes:
        problem: Where more is used than the queue may use; who runs stays.
    """

    before: QueueRow | None
    after: QueueRow | None
    problem: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class LostDevice:
    """A device that would be gone, and what becomes of those who use it."""

    device: DeviceRow
    sentence: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Simulation:
    """All that would differ."""

    pods: tuple[SimulatedPod, ...] = ()
    waiting: tuple[WaitingChange, ...] = ()
    queues: tuple[QueueChange, ...] = ()
    devices: tuple[LostDevice, ...] = ()


def simulate(snapshot: Snapshot, changes: Changes, now: datetime) -> Simulation:
    """What would differ.

    Raises:
        NoChangeError: If the changes make no sense.
    """
    before = world_of(snapshot)
    with_queues = _with_queues(snapshot, changes.queues)
    fewer, lost = _without_devices(with_queues, before, changes.without_devices)
    asked = _with_pods(fewer, changes, now)
    after, names = world_of(asked), _pod_names(changes)
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


# Changes.


def _with_queues(snapshot: Snapshot, queues: Sequence[JsonObject]) -> Snapshot:
    for queue in queues:
        if queue.get("kind") != "Queue":
            raise NoChangeError(f"kind: {queue.get('kind')!r} is no Queue.")
        if problems := queue_problems(queue):
            raise NoChangeError("; ".join(map(str, problems)))
    return changed(snapshot, "queues", *queues) if queues else snapshot


def _with_pods(snapshot: Snapshot, changes: Changes, now: datetime) -> Snapshot:
    by_kind: dict[str, list[JsonObject]] = {plural: [] for plural in KINDS.values()}
    for obj in changes.objects:
        plural = KINDS.get(str(obj.get("kind")))
        if plural is None or not (obj.get("metadata") or {}).get("name"):
            wanted = ", ".join(KINDS)
            raise NoChangeError(f"kind: {obj.get('kind')!r}: only {wanted} with a name are taken.")
        by_kind[plural].append(_stored(obj, changes.namespace, now))
    found = changed(snapshot, "resourceclaimtemplates", *by_kind["resourceclaimtemplates"])
    pods = [_prioritized(pod, snapshot) for pod in by_kind["pods"]]
    made = [_with_claims(pod, found) for pod in pods]
    claims = [*by_kind["resourceclaims"], *(claim for _, more in made for claim in more)]
    found = changed(found, "resourceclaims", *claims)
    return changed(found, "pods", *(pod for pod, _ in made))


def _stored(obj: JsonObject, namespace: str, now: datetime) -> JsonObject:
    """As the API server would store it."""
    metadata = {"namespace": namespace, **obj["metadata"]}
    metadata |= {
        "uid": f"simulated-{metadata['namespace']}-{metadata['name']}",
        "creationTimestamp": timestamp(now),
    }
    stored = {**obj, "metadata": metadata}
    if obj.get("kind") == "Pod":
        spec = {k: v for k, v in (obj.get("spec") or {}).items() if k != "nodeName"}
        stored |= {"spec": spec, "status": {"phase": "Pending"}}
    return stored


def _prioritized(pod: JsonObject, snapshot: Snapshot) -> JsonObject:
    spec = pod["spec"]
    if spec.get("priority") is not None:
        return pod
    name, classes = spec.get("priorityClassName"), snapshot.of("priorityclasses")
    for found in classes:
        if found["metadata"]["name"] == name or (not name and found.get("globalDefault")):
            return {**pod, "spec": {**spec, "priority": found.get("value") or 0}}
    if name:
        raise NoChangeError(f"spec.priorityClassName: {name!r} is not known: give spec.priority.")
    return pod


def _with_claims(pod: JsonObject, snapshot: Snapshot) -> tuple[JsonObject, list[JsonObject]]:
    """The pod with the claims that kube-controller-manager would make of its templates."""
    metadata, spec = pod["metadata"], pod["spec"]
    templates: Mapping[tuple[str, str], JsonObject] = {
        (t["metadata"].get("namespace") or "", t["metadata"]["name"]): t
        for t in snapshot.of("resourceclaimtemplates")
    }
    statuses, made = [], []
    for entry in spec.get("resourceClaims") or ():
        key = (metadata["namespace"], entry.get("resourceClaimTemplateName") or "")
        if template := templates.get(key):
            name = f"{metadata['name']}-{entry['name']}"
            statuses.append({"name": entry["name"], "resourceClaimName": name})
            made.append(_made(template, metadata["namespace"], name))
    status = {**pod["status"], "resourceClaimStatuses": statuses}
    return {**pod, "status": status}, made


def _made(template: JsonObject, namespace: str, name: str) -> JsonObject:
    spec = template.get("spec") or {}
    uid = f"simulated-{namespace}-{name}"
    metadata = {**(spec.get("metadata") or {}), "namespace": namespace, "name": name, "uid": uid}
    return {"metadata": metadata, "spec": spec.get("spec") or {}}


def _without_devices(
    snapshot: Snapshot, world: World, names: Sequence[str]
) -> tuple[Snapshot, tuple[LostDevice, ...]]:
    if not names:
        return snapshot, ()
    rows = device_rows(
        snapshot.of("resourceslices"),
        snapshot.of("instances"),
        snapshot.of("resourceclaims"),
        world,
    )
    lost = [row for row in rows if row.name in names or row.instance in names]
    for name in names:
        if not any(name in (row.name, row.instance) for row in lost):
            raise NoChangeError(f"there is no device or Instance {name}.")
    gone = {row.name for row in lost} | {row.instance for row in lost}
    slices = [_slice_without(obj, gone) for obj in snapshot.of("resourceslices")]
    instances = [obj for obj in snapshot.of("instances") if obj["metadata"]["name"] not in gone]
    effects = {
        obj["metadata"]["name"]: (obj.get("spec") or {}).get("offlineTaintEffect")
        for obj in snapshot.of("configurations")
    }
    found = with_objects(with_objects(snapshot, "resourceslices", slices), "instances", instances)
    return found, tuple(
        LostDevice(device=row, sentence=_lost(row, effects.get(row.configuration) or "NoSchedule"))
        for row in lost
    )


def _slice_without(obj: JsonObject, gone: Iterable[str]) -> JsonObject:
    spec = obj.get("spec") or {}
    left = [device for device in spec.get("devices") or () if device["name"] not in gone]
    return {**obj, "spec": {**spec, "devices": left}}


def _lost(row: DeviceRow, effect: str) -> str:
    if not row.used:
        return f"{number_of(row.slots, 'free slot')} fewer; no pod uses it."
    users = ", ".join(dict.fromkeys(user.what for user in row.users))
    if row.path == "DevicePlugin":
        return f"Its slots stay held by {users} until their pods end; no new ones are given."
    pods = number_of(sum(len(user.pods) for user in row.users), "pod")
    if effect == "NoExecute":
        return f"It is tainted NoExecute. Evicted with {users}: {pods}."
    return f"It is tainted NoSchedule: {users} keep it, and their charge, until {pods} ended."


# What follows.


def _pod_names(changes: Changes) -> list[tuple[str, str]]:
    pods = (obj["metadata"] for obj in changes.objects if obj.get("kind") == "Pod")
    return [(m.get("namespace") or changes.namespace, m["name"]) for m in pods]


def _needs_nothing(pod: str) -> SimulatedPod:
    sentence = "It asks for no devices, and no rule of queues looks at it."
    return SimulatedPod(pod=pod, reason=ADMITTED, sentence=sentence)


def _simulated(pod: PodView, world: World, free: FreeDevices, now: datetime) -> SimulatedPod:
    name, found = _named(pod), judge_waiting(pod, world)
    if isinstance(found, Refused):
        return _refused(pod, found, world, now)
    if (short := free.take([other for other, _ in found.admitted])) is not None:
        sentence = f"No rule of queues keeps it. {short.sentence}"
        return SimulatedPod(pod=name, reason=Wait.NO_DEVICE_FREE, sentence=sentence)
    charged: list[Charged] = []
    for other, admitted in found.admitted:
        charged.extend(_charged(other, admitted))
        assume(other, admitted, world, now)
    sentence = "No rule of queues keeps it; where it runs kube-scheduler decides."
    if len(found.admitted) > 1:
        sentence = f"{len(found.admitted)} pods of its group go together. {sentence}"
    return SimulatedPod(pod=name, reason=ADMITTED, sentence=sentence, charged=tuple(charged))


def _refused(pod: PodView, found: Refused, world: World, now: datetime) -> SimulatedPod:
    going, sentence = decision(world, pod, now), found.sentence
    evicted: tuple[str, ...] = ()
    if isinstance(going, Take):
        sentence, evicted = f"{sentence} {going.sentence}", tuple(map(_named, going.pods))
    return SimulatedPod(
        pod=_named(pod), reason=str(found.reason), sentence=sentence, evicted=evicted
    )


def _charged(pod: PodView, admitted: Admitted) -> Iterator[Charged]:
    for use in admitted.claims:
        for key, amount in use.adds:
            yield Charged(queue=use.owner, device_class=key, added=amount, what=str(use.claim))
    for key, amount in admitted.requests:
        yield Charged(queue=admitted.queue, device_class=key, added=amount, what=str(pod))


def _named(pod: PodView) -> str:
    return f"{pod.namespace}/{pod.name}"


def _waiting(before: World, after: World, now: datetime) -> Iterator[WaitingChange]:
    """The pods that wait and would be told something else, or for whom somebody would go."""
    devices_before, devices_after = free_now(before), free_now(after)
    for pod in sorted(before.facts.pods(), key=_named):
        other = after.facts.pod(pod.uid)
        if other is None or not pod.may_be_bound or not pod.may_use_devices:
            continue
        was = _told(pod, before, devices_before, now)
        now_is = _told(other, after, devices_after, now)
        if was != now_is:
            reason, sentence, evicted = now_is
            yield WaitingChange(
                pod=_named(pod), before=was[0], after=reason, sentence=sentence, evicted=evicted
            )


def _told(
    pod: PodView, world: World, free: FreeDevices, now: datetime
) -> tuple[str, str, tuple[str, ...]]:
    refused = waiting_refusal(pod, world)
    if refused is None:
        return (*without_refusal(pod, free), ())
    going = decision(world, pod, now)
    evicted = tuple(map(_named, going.pods)) if isinstance(going, Take) else ()
    return str(refused.reason), refused.sentence, evicted


def _queue_changes(before: World, after: World) -> Iterator[QueueChange]:
    """Usage counts what is assumed of the given pods."""
    was = {(row.queue, row.device_class): row for row in queue_rows(before)}
    now = {(row.queue, row.device_class): _counting(after, row) for row in queue_rows(after)}
    for key in sorted({*was, *now}):
        old, new = was.get(key), now.get(key)
        if old != new:
            yield QueueChange(before=old, after=new, problem=_over(new))


def _counting(world: World, row: QueueRow) -> QueueRow:
    more = world.assumptions.usage.amount(row.queue, ResourceKey(row.device_class))
    return replace(row, usage=row.usage + more) if row.device_class else row


def _over(row: QueueRow | None) -> str:
    if row is None or row.queue == NO_QUEUE or row.limit is None or row.usage <= row.limit:
        return ""
    return f"{row.usage - row.limit} more are used than its limit: who runs stays, nobody is added."
