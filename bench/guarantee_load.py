"""What `bench.guarantee` asks of a cluster: nodes, devices, queues, and pods of several kinds."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from bench import cluster_load
from bench.cluster_load import NAMESPACE, QUEUE_OBJECTS, create_all
from bench.first_eviction import a_queue
from kube.calls.api import ApiClient
from kube.kinds import CLAIMS, CLASSES, NAMESPACES, PODS, SLICES
from kube.objects import JsonObject
from kube.resources import Resource
from local_cluster import fake_nodes
from local_cluster.api import Cluster
from scheduler_plugin.objects.names import QUEUE_LABEL, QUOTA_GATE
from tests.e2e.test_policies import POD_GROUP_CRD

GRACE_SECONDS = 5
GANG = 10
CLASSES_AT_ONCE = 8
VOLUMES = Resource("", "v1", "persistentvolumes", namespaced=False)
VOLUME_CLAIMS = Resource("", "v1", "persistentvolumeclaims")
GROUPS = Resource("scheduling.run.ai", "v2alpha2", "podgroups")


@dataclass(frozen=True, slots=True)
class Case:
    """What the pods are, and what their nodes.

    Attributes:
        classes: How many classes they are spread over.
        each: Devices of each node.
        full: Whether as many nodes again have no CPU left.
    """

    name: str
    classes: int = 1
    each: int = cluster_load.DEVICES_PER_NODE
    full: bool = False

    def nodes(self, pods: int) -> int:
        needed = -(-pods // self.each)
        return 2 * needed if self.full else needed


CASES = {
    case.name: case
    for case in (
        Case("alike"),
        Case("gangs"),
        Case("volumes", each=1),
        Case("repelling"),
        Case("full", each=1, full=True),
        Case("classes", classes=CLASSES_AT_ONCE),
    )
}


def class_names(case: Case) -> list[str]:
    return [f"class-{number}" for number in range(case.classes)]


def class_of(case: Case, number: int) -> str:
    return class_names(case)[number % case.classes]


def a_class(name: str) -> JsonObject:
    expression = f'device.attributes["{cluster_load.DRIVER}"].kind == "{name}"'
    body = cluster_load.a_class(name)
    return body | {"spec": {"selectors": [{"cel": {"expression": expression}}]}}


def a_slice(case: Case, node: str, first: int, pods: int) -> JsonObject:
    body = cluster_load.a_slice(node)
    devices = [
        {"name": f"device-{n}", "attributes": {"kind": {"string": class_of(case, first + n)}}}
        for n in range(min(case.each, pods - first))
    ]
    return body | {"spec": {**body["spec"], "devices": devices}}


def queues(case: Case, pods: int) -> Iterator[JsonObject]:
    for number, name in enumerate(class_names(case)):
        for queue, quota in ((f"mine-{number}", pods), (f"robots-{number}", 0)):
            share = {"deviceClass": name, "quota": quota, "limit": -1}
            body = a_queue(queue, 0, -1, parent="")
            yield {**body, "spec": {**body["spec"], "resources": [share]}}


def a_claim(case: Case, name: str, number: int) -> JsonObject:
    body = cluster_load.a_claim(0, device_class=class_of(case, number))
    return body | {"metadata": {"name": name, "namespace": NAMESPACE}}


def a_pod(case: Case, kind: str, number: int, *, gated: bool) -> JsonObject:
    name = f"{kind[0]}{number}" if kind == "robots" else f"w{number}"
    body: dict[str, Any] = cluster_load.a_pod(0, cluster_load.Load(0, 1, 1))
    queue = f"{kind}-{number % case.classes}"
    body["metadata"] |= {"name": name, "labels": {QUEUE_LABEL: queue}}
    spec = body["spec"]
    spec["resourceClaims"] = [{"name": "device", "resourceClaimName": name}]
    spec["terminationGracePeriodSeconds"] = GRACE_SECONDS
    if gated:
        spec["schedulingGates"] = [{"name": QUOTA_GATE}]
    if kind == "mine" and case.name == "volumes":
        spec["volumes"] = [{"name": "data", "persistentVolumeClaim": {"claimName": "data"}}]
    if kind == "mine" and case.name == "gangs":
        body["metadata"]["annotations"] = {"pod-group-name": f"gang-{number // GANG}"}
    if kind == "mine" and case.name == "full":
        spec["containers"][0]["resources"]["requests"] = {"cpu": "1"}
    return body


async def furnish(client: ApiClient, cluster: Cluster, case: Case, pods: int) -> None:
    await client.create(NAMESPACES, {"metadata": {"name": NAMESPACE}})
    account = {"metadata": {"name": "default", "namespace": NAMESPACE}}
    await client.create(cluster_load.ACCOUNTS, account)
    for name in class_names(case):
        await client.create(CLASSES, a_class(name))
    for queue in queues(case, pods):
        await client.create(QUEUE_OBJECTS, queue)
    names = fake_nodes.names(case.nodes(pods))
    with_devices = names[len(names) // 2 :] if case.full else names
    slices = (a_slice(case, n, i * case.each, pods) for i, n in enumerate(with_devices))
    await create_all(client, SLICES, slices)
    await furnish_extras(client, cluster, case, pods)


async def furnish_extras(client: ApiClient, cluster: Cluster, case: Case, pods: int) -> None:
    names = fake_nodes.names(case.nodes(pods))
    match case.name:
        case "volumes":
            await a_volume(client)
        case "gangs":
            await groups(client, cluster, pods)
        case "repelling":
            await on_each(client, names, {"affinity": REPELLING})
        case "full":
            await on_each(client, names[: len(names) // 2], {}, cpu="100")
        case _:
            pass


REPELLING = {
    "podAntiAffinity": {
        "requiredDuringSchedulingIgnoredDuringExecution": [
            {
                "labelSelector": {"matchLabels": {"app": "daemon"}},
                "topologyKey": "kubernetes.io/hostname",
            }
        ]
    }
}


async def on_each(
    client: ApiClient, nodes: Sequence[str], spec: JsonObject, cpu: str = "10m"
) -> None:
    container = {"name": "main", "image": "none", "resources": {"requests": {"cpu": cpu}}}
    await create_all(
        client,
        PODS,
        (
            {
                "metadata": {
                    "name": f"daemon-{node}",
                    "namespace": NAMESPACE,
                    "labels": {"app": "daemon"},
                },
                "spec": {
                    "nodeName": node,
                    "containers": [container],
                    "automountServiceAccountToken": False,
                    **spec,
                },
            }
            for node in nodes
        ),
    )


async def a_volume(client: ApiClient) -> None:
    """One for all, bound as the controllers would."""
    modes, size = ["ReadWriteMany"], {"storage": "1Mi"}
    claim = {
        "metadata": {
            "name": "data",
            "namespace": NAMESPACE,
            "annotations": {"pv.kubernetes.io/bind-completed": "yes"},
        },
        "spec": {
            "accessModes": modes,
            "resources": {"requests": size},
            "storageClassName": "",
            "volumeName": "data",
        },
    }
    made = await client.create(VOLUME_CLAIMS, claim)
    path = VOLUME_CLAIMS.at("data", NAMESPACE, subresource="status")
    await client.merge_patch(path, {"status": {"phase": "Bound", "accessModes": modes}})
    uid = made["metadata"]["uid"]
    spec = {
        "capacity": size,
        "accessModes": modes,
        "hostPath": {"path": "/tmp"},
        "claimRef": {"namespace": NAMESPACE, "name": "data", "uid": uid},
    }
    await client.create(VOLUMES, {"metadata": {"name": "data"}, "spec": spec})


async def groups(client: ApiClient, cluster: Cluster, pods: int) -> None:
    cluster.apply(POD_GROUP_CRD)
    cluster.kubectl("wait", "--for=condition=Established", f"crd/podgroups.{GROUPS.group}")
    for number in range(pods // GANG):
        metadata = {"name": f"gang-{number}", "namespace": NAMESPACE}
        body = {"apiVersion": GROUPS.api_version, "kind": "PodGroup", "metadata": metadata}
        await client.create(GROUPS, body | {"spec": {"minMember": GANG}})


async def arrive(client: ApiClient, case: Case, kind: str, count: int, *, gated: bool) -> None:
    prefix = "r" if kind == "robots" else "w"
    await create_all(client, CLAIMS, (a_claim(case, f"{prefix}{n}", n) for n in range(count)))
    await create_all(client, PODS, (a_pod(case, kind, n, gated=gated) for n in range(count)))
