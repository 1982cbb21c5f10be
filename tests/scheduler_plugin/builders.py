"""Builders of objects as the API returns them, and of a world that knows them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, TypeVar

from driver.api import CONFIGURATION_LABEL, DRIVER_NAME
from scheduler_plugin.accounting.world import World
from scheduler_plugin.judging.verdicts import Admitted, Refused, Verdict, assume, judge
from scheduler_plugin.objects.amounts import Charges, ResourceKey, charges
from scheduler_plugin.objects.claim_objects import claim_view
from scheduler_plugin.objects.claims import ClaimView
from scheduler_plugin.objects.devices.devices import ClassView, SliceView, class_view, slice_view
from scheduler_plugin.objects.names import (
    QUEUE_ANNOTATION,
    QUEUE_LABEL,
    AccountingSettings,
    ClaimUid,
    PodUid,
    Queue,
    QueueName,
)
from scheduler_plugin.objects.pod_objects import pod_view
from scheduler_plugin.objects.pods import NamespaceView, PodGroupView, PodView
from scheduler_plugin.objects.queue_objects import parse_queue

OWN_GROUP = {"apiGroup": "scheduling.k8s.io", "resource": "podgroups"}
"""Of the entry of a PodGroup in `reservedFor`."""

UNSCHEDULABLE = {
    "conditions": [{"type": "PodScheduled", "status": "False", "reason": "Unschedulable"}]
}
"""The status of a pod that kube-scheduler tried in vain."""

NOW = datetime(2026, 11, 21, 12, 0, tzinfo=UTC)


def moment(now: datetime) -> float:
    """What the monotonic clock shows where nobody ever sets the other."""
    return (now - NOW).total_seconds()


SETTINGS = AccountingSettings()

T = TypeVar("T")


def amounts(**of: int) -> Charges:
    return charges({ResourceKey(key): amount for key, amount in of.items()})


def a_queue_object(name: str = "vision", **spec: Any) -> dict[str, Any]:
    """A Queue; `onvif=(quota, limit)`, or with a weight as well, become its resources.

    All namespaces may use it, unless `namespaceSelector` says otherwise; None leaves that out.
    """
    resources = [
        {
            "deviceClass": key,
            **dict(zip(("quota", "limit", "overQuotaWeight"), value, strict=False)),
        }
        for key, value in spec.items()
        if isinstance(value, tuple)
    ]
    fields = {key: value for key, value in spec.items() if not isinstance(value, tuple)}
    if resources:
        fields["resources"] = resources
    if fields.setdefault("namespaceSelector", {}) is None:
        del fields["namespaceSelector"]
    return {
        "apiVersion": "moorage.dev/v1alpha1",
        "kind": "Queue",
        "metadata": {"name": name, "uid": f"uid-of-{name}", "generation": 1},
        "spec": fields,
    }


def a_queue(name: str = "vision", **spec: Any) -> Queue:
    queue = parse_queue(a_queue_object(name, **spec))
    assert isinstance(queue, Queue), queue
    return queue


def a_request(
    device_class: str = "onvif", *, name: str = "req", slots: object = None, **fields: Any
) -> dict[str, Any]:
    """A request of exactly one class."""
    capacity = {} if slots is None else {"capacity": {"requests": {"slots": slots}}}
    return {"name": name, "exactly": {"deviceClassName": device_class, **capacity, **fields}}


def a_choice(*alternatives: Mapping[str, Any], name: str = "req") -> dict[str, Any]:
    """A request with `firstAvailable`; alternatives as `a_request` makes them."""
    return {
        "name": name,
        "firstAvailable": [{"name": a["name"], **a["exactly"]} for a in alternatives],
    }


def a_result(
    request: str = "req", *, driver: str = DRIVER_NAME, slots: object = None, **fields: Any
) -> dict[str, Any]:
    """One allocated device."""
    consumed = {} if slots is None else {"consumedCapacity": {"slots": slots}}
    device = {"pool": "onvif", "device": "onvif-aaaaaa"}
    return {"request": request, "driver": driver, **device, **consumed, **fields}


def a_claim_object(name: str = "cam", **overrides: Any) -> dict[str, Any]:
    """A ResourceClaim; `queue`, `owner_pod`, `requests`, `results`, `pods`, `uid` may be given.

    Of `groups` each is a PodGroup that it is reserved for.

    One with a time in `deleted` is being deleted.
    """
    labels = {QUEUE_LABEL: overrides["queue"]} if overrides.get("queue") else {}
    annotations = dict(overrides.get("annotations", {}))
    if overrides.get("owner_pod"):
        annotations["moorage.dev/owner-pod"] = f"uid-of-{overrides['owner_pod']}"
    results: Sequence[Any] | None = overrides.get("results")
    status: dict[str, Any] = {}
    if results is not None:
        status["allocation"] = {"devices": {"results": list(results)}}
    consumers = [
        *({"resource": "pods", "name": pod} for pod in overrides.get("pods", ())),
        *({**OWN_GROUP, "name": group} for group in overrides.get("groups", ())),
    ]
    if consumers:
        status["reservedFor"] = [{**each, "uid": f"uid-of-{each['name']}"} for each in consumers]
    return {
        "metadata": {
            "namespace": overrides.get("namespace", "default"),
            "name": name,
            "uid": overrides.get("uid", f"uid-of-{name}"),
            "resourceVersion": "1",
            "labels": labels,
            "annotations": annotations,
            **({"deletionTimestamp": overrides["deleted"]} if overrides.get("deleted") else {}),
        },
        "spec": {"devices": {"requests": overrides.get("requests", [a_request()])}},
        "status": status,
    }


def a_claim(name: str = "cam", **overrides: Any) -> ClaimView:
    return claim_view(a_claim_object(name, **overrides), queue_label=QUEUE_LABEL)


def an_allocated_claim(name: str = "cam", *pods: str, **overrides: Any) -> ClaimView:
    """A claim with one device, reserved for these pods."""
    return a_claim(name, **{"results": [a_result()], "pods": pods, **overrides})


def a_pod_object(name: str = "a", **overrides: Any) -> dict[str, Any]:
    """A Pod; `queue`, `claims`, `requests`, `node`, `phase`, `priority`, `group` may be given.

    One with a node was bound by Moorage, unless it is `unjudged`.
    """
    labels = dict(overrides.get("labels", {}))
    if overrides.get("queue"):
        labels[QUEUE_LABEL] = overrides["queue"]
    if overrides.get("non_preemptible"):
        labels["moorage.dev/preemptibility"] = "non-preemptible"
    claims = [{"name": c, "resourceClaimName": c} for c in overrides.get("claims", ())]
    annotations = dict(overrides.get("annotations", {}))
    if overrides.get("queue") and overrides.get("node") and not overrides.get("unjudged"):
        annotations.setdefault(QUEUE_ANNOTATION, overrides["queue"])
    spec: dict[str, Any] = {
        "schedulerName": "moorage",
        "resourceClaims": overrides.get("resource_claims", claims),
        "containers": [{"name": "main", "resources": {"limits": overrides.get("requests", {})}}],
        **overrides.get("spec", {}),
    }
    if overrides.get("group"):
        spec["schedulingGroup"] = {"podGroupName": overrides["group"]}
    if overrides.get("node"):
        spec["nodeName"] = overrides["node"]
    return {
        "metadata": {
            "namespace": overrides.get("namespace", "default"),
            "name": name,
            "uid": overrides.get("uid", f"uid-of-{name}"),
            "creationTimestamp": overrides.get("created", "2026-11-21T11:00:00Z"),
            "labels": labels,
            "annotations": annotations,
        },
        "spec": spec,
        "status": {"phase": overrides.get("phase", "Pending"), **overrides.get("status", {})},
    }


def a_pod(name: str = "a", settings: AccountingSettings = SETTINGS, **overrides: Any) -> PodView:
    return pod_view(a_pod_object(name, **overrides), settings)


def a_group(name: str = "train", **fields: Any) -> PodGroupView:
    """A PodGroup of Kubernetes' own API, for which claims may be reserved."""
    named = {"uid": f"uid-of-{name}", "queue": QueueName(""), **fields}
    return PodGroupView("default", name, api_version="scheduling.k8s.io/v1alpha2", **named)


def a_node_object(
    name: str = "node-a", labels: Mapping[str, str] | None = None, **overrides: Any
) -> dict[str, Any]:
    """A Node that is ready; `taints`, `allocatable`, `unschedulable` may be given."""
    spec = {key: overrides[key] for key in ("taints", "unschedulable") if key in overrides}
    return {
        "metadata": {"name": name, "uid": f"uid-of-{name}", "labels": dict(labels or {})},
        "spec": spec,
        "status": {
            "allocatable": overrides.get("allocatable", {"cpu": "4", "pods": "110"}),
            "conditions": [{"type": "Ready", "status": "True"}],
        },
    }


def a_class_object(name: str = "onvif", **overrides: Any) -> dict[str, Any]:
    """A DeviceClass; `configuration` makes it one of Moorage's."""
    labels = dict(overrides.get("labels", {}))
    if overrides.get("configuration"):
        labels[CONFIGURATION_LABEL] = overrides["configuration"]
    return {
        "metadata": {
            "name": name,
            "creationTimestamp": overrides.get("created", "2026-11-21T10:00:00Z"),
            "labels": labels,
            "annotations": overrides.get("annotations", {}),
        },
        "spec": overrides.get("spec", {}),
    }


def a_class(name: str = "onvif", **overrides: Any) -> ClassView:
    return class_view(a_class_object(name, **overrides))


def our_class(name: str = "onvif", **overrides: Any) -> ClassView:
    """A class that Moorage made for the Configuration of its name."""
    spec = {"extendedResourceName": f"akri.sh/{name}"}
    return a_class(name, **{"configuration": name, "spec": spec, **overrides})


def their_class(name: str, selector: str, **overrides: Any) -> ClassView:
    """A class that an administrator made, with a selector of his own."""
    spec = {"selectors": [{"cel": {"expression": selector}}], **overrides.pop("spec", {})}
    return a_class(name, spec=spec, **overrides)


def a_slice(name: str, *devices: tuple[str, str], **spec: Any) -> SliceView:
    return slice_view(a_slice_object(name, *devices, **spec))


def a_slice_object(name: str, *devices: tuple[str, str], **spec: Any) -> dict[str, Any]:
    """A slice of our devices, each by Configuration and Instance, under the Instance's name."""
    bodies = [
        {
            "name": instance or f"device-{number}",
            "attributes": {
                "configuration": {"string": configuration},
                "instance": {"string": instance},
            },
        }
        for number, (configuration, instance) in enumerate(devices)
    ]
    spec = {"driver": DRIVER_NAME, "pool": {"name": "onvif"}, "devices": bodies, **spec}
    return {"metadata": {"name": name}, "spec": spec}


def a_world(
    *objects: object,
    settings: AccountingSettings = SETTINGS,
    namespaces: Iterable[str] = ("default",),
) -> World:
    """A world that knows these objects, namespaces, the class `onvif` of Moorage's, and no more."""
    world = World(settings)
    for name in namespaces:
        world.put_namespace(NamespaceView(name, {}))
    world.put_class(our_class())
    put(world, *objects)
    return world


def put(world: World, *objects: object) -> None:
    for found in objects:
        match found:
            case PodView():
                world.put_pod(found)
            case ClaimView():
                world.put_claim(found)
            case PodGroupView():
                world.put_group(found)
            case Queue():
                world.put_queue(found)
            case ClassView():
                world.put_class(found)
            case SliceView():
                world.put_slice(found)
            case _:
                raise AssertionError(found)


def verdict(world: World, pod: PodView, *, now: datetime = NOW, at_bind: bool = False) -> Verdict:
    """The verdict on a pod whose claims the world knows, as Filter and Bind ask for it."""
    world.assumptions.expire(now)
    return judge(pod, world.facts.claims_of(pod), world, at_bind=at_bind)


def admit(world: World, pod: PodView, *, now: datetime = NOW, at_bind: bool = False) -> Admitted:
    """Admit a pod and believe in it, as Filter does."""
    found = verdict(world, pod, now=now, at_bind=at_bind)
    assert isinstance(found, Admitted), found
    assume(pod, found, world, now)
    return found


def refusal(world: World, pod: PodView, *, now: datetime = NOW, at_bind: bool = False) -> Refused:
    found = verdict(world, pod, now=now, at_bind=at_bind)
    assert isinstance(found, Refused), found
    return found


def usage(world: World, queue: str) -> Charges:
    return world.ledger.of(QueueName(queue)).usage


def claim_uid(name: str) -> ClaimUid:
    return ClaimUid(f"uid-of-{name}")


def pod_uid(name: str) -> PodUid:
    return PodUid(f"uid-of-{name}")
