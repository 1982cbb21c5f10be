"""Objects for tests of the checker, as the API server would hold them."""

from __future__ import annotations

from typing import Any

from tests.chaos.bindings import Change
from tests.chaos.objects import CHARGES, OWNER_POD, QUEUE, WORKLOADS, Object, Snapshot, key

PLURALS = {
    "Pod": "pods",
    "ResourceClaim": "resourceclaims",
    "Queue": "queues",
    "Namespace": "namespaces",
    "Node": "nodes",
    "Instance": "instances",
    "Configuration": "configurations",
    "ResourceSlice": "resourceslices",
    "PodGroup": "podgroups",
    "Workload": WORKLOADS,
}


def snapshot(*bodies: Object) -> Snapshot:
    found: dict[str, dict[Any, Object]] = {}
    for body in (*bodies, namespace(), node("a")):
        found.setdefault(PLURALS[body["kind"]], {})[key(body)] = body
    return Snapshot(found)


def changes(*bodies: Object, pause: float = 60) -> list[Change]:
    """One after the other, each as many seconds after the one before."""
    return [
        Change(number, number * pause, PLURALS[body["kind"]], key(body), body)
        for number, body in enumerate(bodies, 1)
    ]


def namespace() -> Object:
    return {"kind": "Namespace", "metadata": {"name": "lab"}}


def node(name: str) -> Object:
    ready = [{"type": "Ready", "status": "True"}]
    return {
        "kind": "Node",
        "metadata": {"name": name},
        "spec": {},
        "status": {"conditions": ready},
    }


def queue(name: str, quota: int = 0, limit: int = -1, **fields: Any) -> Object:
    """Its resource is `echo`. Status and finalizer are as if it were charged what `usage` says."""
    usage = fields.pop("usage", {})
    held = fields.pop("held", {})
    spec = {"namespaceSelector": {}, "resources": [entry(quota, limit)], **fields}
    metadata: Object = {"name": name}
    if usage:
        metadata["finalizers"] = [CHARGES]
    status = {"usage": usage, "usageNonPreemptible": held}
    return {"kind": "Queue", "metadata": metadata, "spec": spec, "status": status}


def entry(quota: int, limit: int, weight: int = 1) -> Object:
    return {"deviceClass": "echo", "quota": quota, "limit": limit, "overQuotaWeight": weight}


def claim(
    name: str = "c", owner: str = "", *users: Object, slots: int = 1, of_class: str = "echo"
) -> Object:
    """With users it is allocated."""
    metadata: Object = {"name": name, "namespace": "lab", "uid": f"uid-{name}"}
    if owner:
        metadata["labels"] = {QUEUE: owner}
    status: Object = {}
    if users:
        metadata["annotations"] = {OWNER_POD: users[0]["metadata"]["uid"]}
        result: Object = {"request": "device", "driver": "moorage.dev", "pool": "a"}
        result["device"] = f"echo-{name}"
        result["consumedCapacity"] = {"slots": str(slots)}
        status = {
            "allocation": {"devices": {"results": [result]}},
            "reservedFor": [
                {"resource": "pods", "name": u["metadata"]["name"], "uid": u["metadata"]["uid"]}
                for u in users
            ],
        }
    request = {"name": "device", "exactly": {"deviceClassName": of_class}}
    spec = {"devices": {"requests": [request]}}
    return {"kind": "ResourceClaim", "metadata": metadata, "spec": spec, "status": status}


def pod(name: str, owner: str, *claims: str, on: str = "", priority: int = 0) -> Object:
    """It uses claims by name, and is on a node or waits."""
    container = {"name": "main", "resources": {"claims": [{"name": c} for c in claims]}}
    sources = [{"name": c, "resourceClaimName": c} for c in claims]
    spec: Object = {
        "schedulerName": "moorage",
        "priority": priority,
        "containers": [container],
        "resourceClaims": sources,
    }
    if on:
        spec["nodeName"] = on
    return {
        "kind": "Pod",
        "metadata": {
            "name": name,
            "namespace": "lab",
            "uid": f"uid-{name}",
            "labels": {QUEUE: owner},
        },
        "spec": spec,
        "status": {"phase": "Running" if on else "Pending"},
    }


def group(name: str, owner: str, least: int) -> Object:
    metadata = {"name": name, "namespace": "lab"}
    return {"kind": "PodGroup", "metadata": metadata, "spec": {"queue": owner, "minMember": least}}


def workload(name: str, uid: str = "") -> Object:
    """A PodGroup of Kubernetes' own API; the kind tells it from KAI's."""
    metadata = {"name": name, "namespace": "lab", "uid": uid or f"uid-{name}"}
    return {"kind": "Workload", "metadata": metadata, "spec": {"schedulingPolicy": {"basic": {}}}}


def for_workload(claim: Object, name: str) -> Object:
    """The claim, reserved for a PodGroup in place of pods."""
    entry = {"apiGroup": "scheduling.k8s.io", "resource": "podgroups"}
    entries = [{**entry, "name": name, "uid": f"uid-{name}"}]
    return {**claim, "status": {**claim["status"], "reservedFor": entries}}


def member(pod: Object, workload: str) -> Object:
    return {**pod, "spec": {**pod["spec"], "schedulingGroup": {"podGroupName": workload}}}


def published(*names: str, slots: int = 1) -> Object:
    """A pool of a node, with a device for each name."""
    devices = [
        {
            "name": name,
            "attributes": {"configuration": {"string": "echo"}},
            "allowMultipleAllocations": True,
            "capacity": {"slots": {"value": str(slots)}},
        }
        for name in names
    ]
    pool = {"name": "a", "generation": 1}
    spec = {"driver": "moorage.dev", "pool": pool, "nodeName": "a", "devices": devices}
    return {"kind": "ResourceSlice", "metadata": {"name": "a"}, "spec": spec}


def configuration() -> Object:
    return {"kind": "Configuration", "metadata": {"name": "echo", "namespace": "default"}}


def told(waiting: Object, sentence: str) -> Object:
    """A pod that kube-scheduler has told why it waits."""
    why = {"type": "PodScheduled", "status": "False", "message": sentence}
    return {**waiting, "status": {"phase": "Pending", "conditions": [why]}}
