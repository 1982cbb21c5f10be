"""What a story is told with: disks that are plugged, Configurations, claims, pods, and a look."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

from local_cluster import loop_devices
from local_cluster.api import BUSYBOX_IMAGE, Cluster
from local_cluster.loop_devices import LoopDevice
from tests.e2e.driver.installation import Drivers

T = TypeVar("T")

SECONDS = 60.0

SCHEDULER = "moorage"
"""The only one that may allocate devices of ours. Beside the driver alone it asks nobody."""

TOLD = "-- told --"
"""What a pod prints when it has said everything, and goes to sleep."""


@dataclass
class Story:
    """One test's own namespace, Configuration and disks; everything else is the cluster's.

    Attributes:
        name: Of the Configuration, and so of its DeviceClass; nobody else's.
        folder: Of the files behind the disks; rules find the disks by it.
    """

    cluster: Cluster
    drivers: Drivers
    namespace: str
    name: str
    folder: Path
    disks: list[LoopDevice] = field(default_factory=list)

    @property
    def rule(self) -> str:
        return f'SUBSYSTEM=="block", ATTR{{loop/backing_file}}=="{self.folder}/*"'

    def plug(self, content: str = "a disk") -> LoopDevice:
        """Plug a disk with this text at its beginning."""
        disk = loop_devices.plug()
        self.disks.append(disk)
        backing = self.folder / disk.name
        backing.write_bytes(f"{content}\n".encode().ljust(4096, b"\0"))
        disk.attach(backing)
        return disk

    def unplug(self, disk: LoopDevice) -> None:
        loop_devices.unplug(disk)

    def configure(self, name: str | None = None, *, rule: str | None = None, **spec: Any) -> None:
        """Apply a Configuration that finds this story's disks."""
        details = json.dumps({"udevRules": [rule or self.rule]})
        body = {
            "apiVersion": "akri.sh/v0",
            "kind": "Configuration",
            "metadata": {"name": name or self.name, "namespace": self.namespace},
            "spec": {"discoveryHandler": {"name": "udev", "discoveryDetails": details}, **spec},
        }
        self.cluster.apply(body)

    def claim(self, name: str = "disk", *, of_class: str = "", config: Sequence[Any] = ()) -> None:
        """Create a claim for one device of this story's class, or another one."""
        requests = [{"name": "disk", "exactly": {"deviceClassName": of_class or self.name}}]
        self._apply(
            {
                "apiVersion": "resource.k8s.io/v1",
                "kind": "ResourceClaim",
                "metadata": {"name": name},
                "spec": {"devices": {"requests": requests, "config": list(config)}},
            }
        )

    def pod(self, name: str = "reader", *, claim: str = "disk", **options: Any) -> None:
        """Create a pod that prints its environment and its device's first line, and stays.

        Another command of the shell has to end with `exec sleep`, or `read` waits for ever.

        Options: `node`, `image`, and fields of its container as `container`.
        """
        script = "env | sort | grep UDEV_; head -n1 $UDEV_DEVNODE; exec sleep 100000"
        container = {
            "name": "main",
            "image": options.get("image", BUSYBOX_IMAGE),
            "imagePullPolicy": "Never",
            "command": ["sh", "-c", script],
            "resources": {"claims": [{"name": "disk"}]},
            **options.get("container", {}),
        }
        container["command"] = [
            part.replace("exec sleep", f"echo {TOLD}; exec sleep") for part in container["command"]
        ]
        spec: dict[str, Any] = {
            "schedulerName": SCHEDULER,
            "terminationGracePeriodSeconds": 0,
            "containers": [container],
            "resourceClaims": [{"name": "disk", "resourceClaimName": claim}],
            **options.get("spec", {}),
        }
        if node := options.get("node"):
            spec["nodeSelector"] = {"kubernetes.io/hostname": node}
        self._apply({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name}, "spec": spec})

    def _apply(self, body: dict[str, Any]) -> None:
        self.cluster.apply(body, namespace=self.namespace)

    def wait_running(self, pod: str = "reader") -> None:
        self.cluster.wait(
            f"pod/{pod}", "condition=Ready", namespace=self.namespace, seconds=SECONDS
        )

    def read(self, pod: str = "reader") -> str:
        """What a pod prints; it may be Ready before it has printed anything."""

        def told() -> list[str]:
            logs = self.cluster.kubectl("logs", "-n", self.namespace, pod).stdout
            return logs.split(f"{TOLD}\n")[:-1]

        return self.until(f"{pod} has told everything", told)[0]

    def delete(self, kind: str, name: str) -> None:
        self.cluster.kubectl("delete", kind, name, "-n", self.namespace, f"--timeout={SECONDS}s")

    def get(self, kind: str, name: str) -> dict[str, Any]:
        found = self.cluster.get(kind, name, namespace=self.namespace)
        assert found is not None, f"{kind}/{name} is gone"
        return found

    def claim_uid(self, name: str = "disk") -> str:
        uid: str = self.get("resourceclaim", name)["metadata"]["uid"]
        return uid

    def container(self, pod: str = "reader") -> dict[str, Any]:
        """What says whether its container was left alone; its devices' health comes and goes."""
        (status,) = self.get("pod", pod)["status"]["containerStatuses"]
        return {name: status[name] for name in ("containerID", "restartCount", "state")}

    def tells(self, pod: str, words: str) -> bool:
        """Whether an event of a pod says these words."""
        events = self.cluster.list("events", namespace=self.namespace)
        mine = (event for event in events if event["involvedObject"]["name"] == pod)
        return any(words in event["message"] for event in mine)

    def pod_node(self, pod: str = "reader") -> str:
        node: str = self.get("pod", pod)["spec"]["nodeName"]
        return node

    def devices(self, node: str | None = None) -> list[dict[str, Any]]:
        """This story's devices in the ResourceSlices of a node, or of all nodes."""
        return [
            device
            for slice_ in self.cluster.list("resourceslices")
            if slice_["spec"]["driver"] == "moorage.dev"
            and node in (None, slice_["spec"].get("nodeName"))
            for device in slice_["spec"].get("devices") or ()
            if device["attributes"]["configuration"]["string"] == self.name
        ]

    def wait_devices(self, count: int, node: str = "node-a") -> list[dict[str, Any]]:
        """Wait until so many devices are published for this node, untainted."""

        def published() -> list[list[dict[str, Any]]]:
            devices = [d for d in self.devices(node) if not d.get("taints")]
            return [devices] if len(devices) == count else []

        return self.until(f"{count} devices of {node} are published", published)[0]

    def instances(self) -> list[dict[str, Any]]:
        return self.cluster.list("akrii", namespace=self.namespace)

    def condition(self, name: str, kind: str = "Accepted") -> dict[str, Any] | None:
        """A condition of a Configuration, or None."""
        status = self.get("akric", name).get("status", {})
        found: Iterator[dict[str, Any]] = (
            c for c in status.get("conditions", ()) if c["type"] == kind
        )
        return next(found, None)

    def cdi_files(self, claim_uid: str, node: str) -> list[Path]:
        """The CDI files that mention this claim, on this node."""
        folder = self.cluster.node(node).path("/run/cdi")
        return [path for path in folder.glob("*.json") if claim_uid in _text(path)]

    def until(self, what: str, condition: Callable[[], T | None], seconds: float = SECONDS) -> T:
        return self.cluster.wait_until(what, condition, seconds=seconds)

    def wait_unprepared(self, claim_uid: str, node: str) -> None:
        """Wait until nothing on this node remembers the claim.

        Of a pod that ends while the kubelet starts, the kubelet unprepares it a minute later.
        """
        self.until(
            f"claim {claim_uid} is unprepared on {node}",
            lambda: not self.cdi_files(claim_uid, node),
            seconds=2 * SECONDS,
        )

    def end(self) -> None:
        """Unplug everything."""
        for disk in self.disks:
            loop_devices.unplug(disk)


def _text(path: Path) -> str:
    """What a file says; nothing, if the driver has just removed it."""
    with suppress(FileNotFoundError):
        return path.read_text()
    return ""


@contextmanager
def told(story: Story) -> Iterator[Story]:
    """A story, and the machine as it was before it."""
    try:
        yield story
    finally:
        story.end()
