"""What chaos plays with: a cluster with Moorage in pods, and the objects of its users."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from local_cluster import loop_devices
from local_cluster.api import BUSYBOX_IMAGE, Cluster
from local_cluster.loop_devices import LoopDevice
from tests.chaos.objects import (
    DRIVER,
    OTHERS_CLASSES,
    POD_GROUP,
    PREEMPTIBILITY,
    QUEUE,
    Object,
)
from tests.chaos.vendors import ENTRIES, HAVE_MEASURES, REQUESTS, Vendors, vendors

NAMESPACES = ("chaos-a", "chaos-b")
HOME = "default"
"""The namespace of the Configurations."""
QUEUES: dict[str, Object] = {
    "org": {"resources": [{"deviceClass": "echo", "quota": 6, "limit": 7}]},
    "red": {
        "parent": "org",
        "namespaceSelector": {},
        "resources": [{"deviceClass": "echo", "quota": 3}, {"deviceClass": "disk", "quota": 1}],
    },
    "blue": {
        "parent": "org",
        "namespaceSelector": {},
        "resources": [{"deviceClass": "echo", "quota": 2, "limit": 5}],
    },
    "green": {
        "namespaceSelector": {},
        "claimSharing": {"policy": "Deny", "queues": ["red"]},
        "resources": [{"deviceClass": "echo", "quota": 1}, {"deviceClass": "solo", "limit": 1}],
    },
}
LEAVES = ("red", "blue", "green")
WORDS = ("north", "south", "east")
CLASSES = ("echo", "solo", "disk")
ASKED_FOR = (*CLASSES, *OTHERS_CLASSES)
"""What claims ask for: Moorage's classes, and such as an administrator made."""

HAVE_WORKLOADS = ("1.37",)
"""Which Kubernetes reserves claims for PodGroups of its own API, by these gates."""

WORKLOADS_VERSION = "scheduling.k8s.io/v1beta1"
WORKLOAD_GATES = {"GenericWorkload": True, "DRAWorkloadResourceClaims": True}


@dataclass
class Scene:
    """A cluster in trial.

    Attributes:
        cluster: It has Moorage.
        folder: Of the files behind the disks.
        disks: Those that are plugged.
        vendors: Their drivers, where queues measure what vendors' devices have.
    """

    cluster: Cluster
    folder: Path
    disks: list[LoopDevice] = field(default_factory=list)
    vendors: Vendors | None = None

    @property
    def asked_for(self) -> tuple[str, ...]:
        """What claims ask for."""
        return (*ASKED_FOR, *(REQUESTS if self.vendors else ()))

    def queues(self) -> dict[str, Object]:
        """The specs of all queues, by name."""
        more: dict[str, list[Object]] = ENTRIES if self.vendors else {}
        return {
            name: {**spec, "resources": [*spec["resources"], *more.get(name, ())]}
            for name, spec in QUEUES.items()
        }

    @property
    def has_claims(self) -> bool:
        """Whether the cluster has DRA."""
        return self.cluster.settings.kubernetes != "1.33"

    @property
    def has_workloads(self) -> bool:
        return self.cluster.settings.kubernetes in HAVE_WORKLOADS

    def plug(self) -> None:
        disk = loop_devices.plug()
        backing = self.folder / disk.name
        backing.write_bytes(disk.name.encode().ljust(4096, b"\0"))
        disk.attach(backing)
        self.disks.append(disk)

    def unplug(self, disk: LoopDevice) -> None:
        self.disks.remove(disk)
        loop_devices.unplug(disk)

    def unplug_all(self) -> None:
        for disk in [*self.disks]:
            self.unplug(disk)

    def configurations(self) -> dict[str, Object]:
        rule = f'SUBSYSTEM=="block", ATTR{{loop/backing_file}}=="{self.folder}/*"'
        return {
            "echo": _echo(list(WORDS), shared=True, capacity=3),
            "solo": _echo(["alone"], shared=False, capacity=1),
            "disk": {
                "discoveryHandler": {"name": "udev", "discoveryDetails": f"udevRules: ['{rule}']"}
            },
        }


@contextmanager
def scene(cluster: Cluster, folder: Path, *, measures: bool = True) -> Iterator[Scene]:
    """The users' objects, applied; disks are unplugged at the end.

    Args:
        cluster: It has Moorage.
        folder: For the files behind disks.
        measures: Whether queues measure vendors' devices, where this Kubernetes has such.
    """
    folder.mkdir(parents=True, exist_ok=True)
    found = Scene(cluster, folder)
    with ExitStack() as stack:
        stack.callback(found.unplug_all)
        for _ in range(2):
            found.plug()
        if measures and cluster.settings.kubernetes in HAVE_MEASURES:
            found.vendors = stack.enter_context(vendors(cluster))
        cluster.apply([*_objects(found)])
        yield found


def _objects(found: Scene) -> Iterator[Object]:
    for name, spec in found.queues().items():
        yield queue(name, spec)
    for name, spec in found.configurations().items():
        yield configuration(name, spec)
    if found.has_claims:
        yield from (class_of_others(*each) for each in OTHERS_CLASSES.items())
    for name, leaf in zip(NAMESPACES, LEAVES, strict=False):
        labels = {"moorage.dev/managed": "true", QUEUE: leaf}
        yield {
            "apiVersion": "v1",
            "kind": "Namespace",
            "metadata": {"name": name, "labels": labels},
        }
        if found.has_claims:
            yield from (template(name, each) for each in found.asked_for)


def class_of_others(name: str, selects: str) -> Object:
    """A DeviceClass of an administrator's that selects the devices of a Configuration."""
    ours = f'"{DRIVER}"'
    selector = f"device.attributes[{ours}].configuration == '{selects}'"
    return {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "DeviceClass",
        "metadata": {"name": name},
        "spec": {"selectors": [{"cel": {"expression": f"device.driver == {ours} && {selector}"}}]},
    }


def _echo(words: list[str], *, shared: bool, capacity: int) -> Object:
    details = f"descriptions: {words}\nshared: {str(shared).lower()}\n"
    handler = {"name": "debugEcho", "discoveryDetails": details}
    return {"capacity": capacity, "discoveryHandler": handler}


def queue(name: str, spec: Object) -> Object:
    head = {"apiVersion": "moorage.dev/v1alpha1", "kind": "Queue"}
    return {**head, "metadata": {"name": name}, "spec": spec}


def configuration(name: str, spec: Object) -> Object:
    head = {"apiVersion": "akri.sh/v0", "kind": "Configuration"}
    return {**head, "metadata": {"name": name, "namespace": HOME}, "spec": spec}


def claim(namespace: str, name: str, of_class: str, owner: str = "") -> Object:
    labels = {"labels": {QUEUE: owner}} if owner else {}
    return {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceClaim",
        "metadata": {"name": name, "namespace": namespace, **labels},
        "spec": _devices(of_class),
    }


def template(namespace: str, of_class: str) -> Object:
    return {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceClaimTemplate",
        "metadata": {"name": of_class, "namespace": namespace},
        "spec": {"spec": _devices(of_class)},
    }


def _devices(of_class: str) -> Object:
    request = {"name": "device", "exactly": {"deviceClassName": of_class}}
    return {"devices": {"requests": REQUESTS.get(of_class, [request])}}


def workloads_path(namespace: str = "") -> str:
    """Where Kubernetes' own PodGroups are, of one namespace or of all."""
    within = f"/namespaces/{namespace}" if namespace else ""
    return f"/apis/{WORKLOADS_VERSION}{within}/podgroups"


def workload(namespace: str, name: str, claim: str) -> Object:
    """A PodGroup that a claim is reserved for, and whose pods come one by one."""
    claims = [{"name": "device", "resourceClaimName": claim}]
    return {
        "apiVersion": WORKLOADS_VERSION,
        "kind": "PodGroup",
        "metadata": {"name": name, "namespace": namespace},
        "spec": {"schedulingPolicy": {"basic": {}}, "resourceClaims": claims},
    }


def member_of(workload: str, body: Object) -> Object:
    """A pod of Kubernetes' own PodGroup."""
    return {**body, "spec": {**body["spec"], "schedulingGroup": {"podGroupName": workload}}}


def pod(
    namespace: str,
    name: str,
    asks: Object,
    seconds: int,
    *,
    owner: str = "",
    preemptible: bool | None = None,
    node: str = "",
    of_group: str = "",
) -> Object:
    """A pod that sleeps.

    It asks for a source of its claim, or `{"resource": name}` of the device-plugin path; what its
    label says of preemption is `preemptible`, and nothing is no label.
    """
    labels = {QUEUE: owner} if owner else {}
    if preemptible is not None:
        labels[PREEMPTIBILITY] = "preemptible" if preemptible else "non-preemptible"
    # A shell ends at SIGTERM where `sleep`, as the first process, would not.
    command = ["sh", "-c", f"trap 'exit 0' TERM; sleep {seconds} & wait $!"]
    container: Object = {"name": "main", "image": BUSYBOX_IMAGE, "command": command}
    spec: Object = {"restartPolicy": "Never", "terminationGracePeriodSeconds": 2}
    if "resource" in asks:
        container["resources"] = {"limits": {asks["resource"]: 1}}
    else:
        container["resources"] = {"claims": [{"name": "device"}]}
        spec["resourceClaims"] = [{"name": "device", **asks}]
    if node:
        spec["nodeSelector"] = {"kubernetes.io/hostname": node}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": name,
            "namespace": namespace,
            "labels": labels,
            "annotations": {POD_GROUP: of_group} if of_group else {},
        },
        "spec": {**spec, "containers": [container]},
    }
