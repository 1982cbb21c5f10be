"""The objects of a story, as the API server wants them. Nothing here talks to anybody."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Any

from local_cluster.api import BUSYBOX_IMAGE

QUEUE = "moorage.dev/queue"
ACCOUNTED = "moorage.dev/accounted"
OWNER_POD = "moorage.dev/owner-pod"
OWNER_LEFT_AT = "moorage.dev/owner-left-at"
EVICT_FOREIGN = "moorage.dev/evict-foreign"
CHARGES = "moorage.dev/charges"
PREEMPTIBILITY = "moorage.dev/preemptibility"
SCHEDULER = "moorage"
BINDER = "system:serviceaccount:moorage-system:scheduler-plugin"

# Fake nodes are tainted, so that only pods that can do without a kubelet get there.
TOLERATIONS = [{"key": "moorage.test/fake", "operator": "Exists"}]

HOST = "kubernetes.io/hostname"

Object = dict[str, Any]


def queue(name: str, *, parent: str = "", shares: Mapping[str, Object], **spec: Any) -> Object:
    """A Queue that all namespaces may use; `shares` is quota and limit by class."""
    resources = [{"deviceClass": key, **share} for key, share in shares.items()]
    return {
        "apiVersion": "moorage.dev/v1alpha1",
        "kind": "Queue",
        "metadata": {"name": name},
        "spec": {
            **({"parent": parent} if parent else {}),
            "namespaceSelector": {},
            "resources": resources,
            **spec,
        },
    }


def device_class(
    name: str, driver: str, *, accounted: str | None = "true", only: str = "true", **spec: Any
) -> Object:
    """A class of a driver's devices; `only` is CEL."""
    labels = {} if accounted is None else {ACCOUNTED: accounted}
    selectors = [{"cel": {"expression": f"device.driver == '{driver}' && {only}"}}]
    return {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "DeviceClass",
        "metadata": {"name": name, "labels": labels},
        "spec": {"selectors": selectors, **spec},
    }


def resource_slice(driver: str, node: str, count: int, numa: Iterable[int] = ()) -> Object:
    """Devices of a driver that nobody wrote: they can be allocated, but never prepared.

    The first of them have these values of an attribute `numa`.
    """
    devices: list[Object] = [{"name": f"device-{index}"} for index in range(count)]
    for device, value in zip(devices, numa, strict=False):
        device["attributes"] = {"numa": {"int": value}}
    return {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceSlice",
        "metadata": {"name": f"{driver}-{node}"},
        "spec": {
            "driver": driver,
            "nodeName": node,
            "pool": {"name": node, "generation": 1, "resourceSliceCount": 1},
            "devices": devices,
        },
    }


def claim(
    name: str,
    class_name: str,
    *,
    count: int | None = 1,
    labels: Mapping[str, str] | None = None,
    match: str = "",
    selectors: Iterable[str] = (),
) -> Object:
    """A claim for devices of a class: None for all of a node.

    `match` is an attribute that they have to agree about, `selectors` are CEL.
    """
    spec = _claim_spec(class_name, count)
    if found := [{"cel": {"expression": text}} for text in selectors]:
        spec["devices"]["requests"][0]["exactly"]["selectors"] = found
    if match:
        spec["devices"]["constraints"] = [{"matchAttribute": match}]
    return {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceClaim",
        "metadata": {"name": name, "labels": dict(labels or {})},
        "spec": spec,
    }


def template(name: str, class_name: str, *, count: int = 1) -> Object:
    return {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceClaimTemplate",
        "metadata": {"name": name},
        "spec": {"spec": _claim_spec(class_name, count)},
    }


def _claim_spec(class_name: str, count: int | None) -> Object:
    how_many = {"allocationMode": "All"} if count is None else {"count": count}
    exactly = {"deviceClassName": class_name, **how_many}
    return {"devices": {"requests": [{"name": "device", "exactly": exactly}]}}


def pod(
    name: str,
    claims: Iterable[str] = (),
    *,
    templates: Iterable[str] = (),
    labels: Mapping[str, str] | None = None,
    resources: Mapping[str, Any] | None = None,
    command: Iterable[str] = ("sleep", "100000"),
    **spec: Any,
) -> Object:
    """A pod of the scheduler `moorage` that uses all its claims and sleeps, if it is started."""
    used = [{"name": name, "resourceClaimName": name} for name in claims]
    used += [{"name": name, "resourceClaimTemplateName": name} for name in templates]
    container = {
        "name": "main",
        "image": BUSYBOX_IMAGE,
        "imagePullPolicy": "Never",
        "command": list(command),
        "resources": {"claims": [{"name": entry["name"]} for entry in used], **(resources or {})},
    }
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "labels": dict(labels or {})},
        "spec": {
            "schedulerName": SCHEDULER,
            "terminationGracePeriodSeconds": 0,
            "automountServiceAccountToken": False,
            "tolerations": TOLERATIONS,
            "containers": [container],
            "resourceClaims": used,
            **spec,
        },
    }


def on(node: str) -> Object:
    """The fields of a pod that goes to this node only."""
    return {"nodeSelector": {HOST: node}}


def budget(name: str, labels: Mapping[str, str], at_least: int) -> Object:
    """A PodDisruptionBudget: so many ready pods of these labels stay."""
    spec = {"selector": {"matchLabels": dict(labels)}, "minAvailable": at_least}
    return {"apiVersion": "policy/v1", "metadata": {"name": name}, "spec": spec}


def repelling(label: str, value: str) -> Object:
    """The affinity of a pod that wants no pod of this label on its node."""
    term = {"labelSelector": {"matchLabels": {label: value}}, "topologyKey": HOST}
    return {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}


def beside(label: str, value: str) -> Object:
    """The affinity of a pod that wants a pod of this label on its node."""
    term = {"labelSelector": {"matchLabels": {label: value}}, "topologyKey": HOST}
    return {"podAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}


def spread(topology_key: str) -> list[Object]:
    """The constraint of a pod that goes only where its likes are spread evenly."""
    rule = {"maxSkew": 1, "topologyKey": topology_key, "whenUnsatisfiable": "DoNotSchedule"}
    return [rule]


def volume(name: str, claim: Mapping[str, str]) -> Object:
    """A volume that every node has, for one claim of it."""
    spec = {
        "capacity": {"storage": "1Mi"},
        "accessModes": ["ReadWriteOnce"],
        "hostPath": {"path": "/tmp"},
        "claimRef": dict(claim),
    }
    return {"metadata": {"name": name}, "spec": spec}


def volume_claim(name: str, of: str) -> Object:
    spec = {
        "accessModes": ["ReadWriteOnce"],
        "resources": {"requests": {"storage": "1Mi"}},
        "storageClassName": "",
        "volumeName": of,
    }
    return {"metadata": {"name": name}, "spec": spec}


def other_consumer(number: int) -> Object:
    """An entry of `reservedFor` that is no pod's, so that no controller takes it out."""
    uid = f"00000000-0000-0000-0000-{number:012d}"
    return {"apiGroup": "example.com", "resource": "tasks", "name": f"task-{number}", "uid": uid}


def allocation(driver: str, node: str, now: datetime) -> Object:
    """The first device of a node, as kube-scheduler writes it; without a time it would mend it."""
    field = {"key": "metadata.name", "operator": "In", "values": [node]}
    result = {"request": "device", "driver": driver, "pool": node, "device": "device-0"}
    return {
        "allocationTimestamp": now.strftime("%Y-%m-%dT%H:%M:%SZ"),
        "devices": {"results": [result]},
        "nodeSelector": {"nodeSelectorTerms": [{"matchFields": [field]}]},
    }


def preferring(node: str) -> Object:
    """The affinity of a pod that goes there if it can."""
    expression = {"key": HOST, "operator": "In", "values": [node]}
    preference = {"matchExpressions": [expression]}
    term = {"weight": 100, "preference": preference}
    return {"nodeAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": [term]}}


def binding(pod: str, node: str, **metadata: Any) -> Object:
    return {
        "apiVersion": "v1",
        "kind": "Binding",
        "metadata": {"name": pod, **metadata},
        "target": {"apiVersion": "v1", "kind": "Node", "name": node},
    }


def scheduler_policy(namespace: str) -> tuple[Object, Object]:
    """What sends a namespace's pods to our scheduler, as an administrator may want it."""
    rule = {"apiGroups": [""], "apiVersions": ["v1"], "resources": ["pods"]}
    expression = f'Object{{spec: Object.spec{{schedulerName: "{SCHEDULER}"}}}}'
    mutation = {
        "patchType": "ApplyConfiguration",
        "applyConfiguration": {"expression": expression},
    }
    here = {"matchLabels": {"kubernetes.io/metadata.name": namespace}}
    policy = {
        "metadata": {"name": namespace},
        "spec": {
            "matchConstraints": {
                "namespaceSelector": here,
                "resourceRules": [{**rule, "operations": ["CREATE"]}],
            },
            "reinvocationPolicy": "Never",
            "mutations": [mutation],
        },
    }
    return policy, {"metadata": {"name": namespace}, "spec": {"policyName": namespace}}
