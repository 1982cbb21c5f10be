"""What the benchmark of throughput asks of a cluster: nodes without machines, and pods to bind.

The load waits for one object: pods and claims are there, the DeviceClass that all claims name is
not. Creating it lets kube-scheduler try all pods at once, as after an outage, and nothing but
scheduling goes on while the time is taken.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from kube.calls.api import ApiClient
from kube.kinds import CLAIMS, CLASSES, NAMESPACES, PODS, SLICES
from kube.objects import JsonObject
from kube.resources import Resource
from local_cluster import fake_nodes
from scheduler_plugin.objects.names import ACCOUNTED_LABEL, GROUP, QUEUE_KIND, QUEUE_LABEL, VERSION

NAMESPACE = "bench-throughput"
SCHEDULER = "moorage"
DEVICE_CLASS = "bench-device"
DRIVER = "devices.example"
DEVICES_PER_NODE = 8
ROOT_QUEUES, QUEUES = 4, 20
CONNECTIONS = 32

ACCOUNTS = Resource("", "v1", "serviceaccounts")
QUEUE_OBJECTS = Resource(GROUP, VERSION, "queues", namespaced=False)


@dataclass(frozen=True, slots=True)
class Load:
    """How many pods share how many claims on how many nodes."""

    nodes: int
    claims: int
    pods: int


async def furnish(client: ApiClient, load: Load) -> None:
    """Everything that stays: the devices of the nodes, queues, the namespace."""
    await client.create(NAMESPACES, {"metadata": {"name": NAMESPACE}})
    # Admission wants the account; no controller runs here that would make it.
    await client.create(ACCOUNTS, {"metadata": {"name": "default", "namespace": NAMESPACE}})
    names = fake_nodes.names(load.nodes)
    await create_all(client, SLICES, (a_slice(name) for name in names))
    for queue in queues():
        await client.create(QUEUE_OBJECTS, queue)


async def pile_up(client: ApiClient, load: Load) -> None:
    """The claims and the pods, which wait for the class."""
    await create_all(client, CLAIMS, (a_claim(n) for n in range(load.claims)))
    await create_all(client, PODS, (a_pod(n, load) for n in range(load.pods)))


async def release(client: ApiClient) -> None:
    """Let kube-scheduler have them all."""
    await client.create(CLASSES, a_class())


async def create_all(client: ApiClient, resource: Resource, bodies: Iterable[JsonObject]) -> None:
    """Create objects over several connections, about in their order."""
    waiting = iter(bodies)

    async def work() -> None:
        for body in waiting:
            await client.create(resource, body)

    async with asyncio.TaskGroup() as group:
        for _ in range(CONNECTIONS):
            group.create_task(work())


def a_slice(node: str) -> dict[str, Any]:
    pool = {"name": node, "generation": 1, "resourceSliceCount": 1}
    devices = [{"name": f"device-{number}"} for number in range(DEVICES_PER_NODE)]
    spec = {"driver": DRIVER, "pool": pool, "nodeName": node, "devices": devices}
    return _named("resource.k8s.io/v1", "ResourceSlice", node) | {"spec": spec}


def a_class(name: str = DEVICE_CLASS) -> dict[str, Any]:
    body = _named("resource.k8s.io/v1", "DeviceClass", name)
    body["metadata"]["labels"] = {ACCOUNTED_LABEL: "true"}
    expression = f'device.driver == "{DRIVER}"'
    return body | {"spec": {"selectors": [{"cel": {"expression": expression}}]}}


def queues() -> list[dict[str, Any]]:
    """A few roots, and below them what pods name; limits that nothing here reaches."""
    share = {"deviceClass": DEVICE_CLASS, "quota": 1_000_000, "limit": 1_000_000}
    found = []
    for number in range(QUEUES):
        body = _named(f"{GROUP}/{VERSION}", QUEUE_KIND, f"queue-{number}")
        parent = {} if number < ROOT_QUEUES else {"parent": f"queue-{number % ROOT_QUEUES}"}
        found.append(body | {"spec": {"namespaceSelector": {}, "resources": [share], **parent}})
    return found


def queue_of(pod: int, load: Load) -> str:
    """The pods that share a claim belong to different queues."""
    number = pod + pod // load.claims
    return f"queue-{ROOT_QUEUES + number % (QUEUES - ROOT_QUEUES)}"


def a_claim(
    number: int, namespace: str = NAMESPACE, device_class: str = DEVICE_CLASS
) -> dict[str, Any]:
    body = _named("resource.k8s.io/v1", "ResourceClaim", f"claim-{number}", namespace)
    request = {"name": "device", "exactly": {"deviceClassName": device_class}}
    return body | {"spec": {"devices": {"requests": [request]}}}


def a_pod(number: int, load: Load) -> dict[str, Any]:
    """A pod of the size that pods have; its claim's other pods come long before or after it."""
    body = _named("v1", "Pod", f"pod-{number}", NAMESPACE)
    body["metadata"]["labels"] = {"app": "bench", QUEUE_LABEL: queue_of(number, load)}
    container = {
        "name": "main",
        "image": "registry.example/team/image:1.2.3",
        "env": [{"name": f"SETTING_{n}", "value": f"value {n}"} for n in range(4)],
        "resources": {"requests": {"cpu": "10m"}, "claims": [{"name": "device"}]},
    }
    claim = {"name": "device", "resourceClaimName": f"claim-{number % load.claims}"}
    return body | {
        "spec": {
            "schedulerName": SCHEDULER,
            "containers": [container],
            "resourceClaims": [claim],
            "tolerations": [{"key": fake_nodes.TAINT["key"], "operator": "Exists"}],
            "automountServiceAccountToken": False,
            "terminationGracePeriodSeconds": 0,
        }
    }


def _named(api_version: str, kind: str, name: str, namespace: str = "") -> dict[str, Any]:
    metadata: dict[str, Any] = {"name": name}
    if namespace:
        metadata["namespace"] = namespace
    return {"apiVersion": api_version, "kind": kind, "metadata": metadata}
