"""The story that the demo tells, one step after the other, each seen in the cluster itself."""

from __future__ import annotations

import time
from pathlib import Path

from moorage_demo.disks import plugged_disk
from moorage_demo.scene import Object, Scene
from moorage_demo.sharing import Sharing

TEXT = "hello from a real block device"


class Story:
    """Tells of one disk that pods of two queues read, and of a second one, plugged meanwhile."""

    def __init__(self, scene: Scene) -> None:
        self._scene = scene
        self._cluster = scene.cluster
        self._sharing = Sharing(scene)
        self._folder = scene.cluster.work_dir / "moorage-demo"

    def tell(self) -> str:
        """Returns what it comes to."""
        with plugged_disk(self._folder, TEXT) as disk:
            self._scene.row("plug", str(disk.path), "the kernel reports a block device")
            self._discovered()
            self._sharing.queues_are_made()
            node = self._prepared()
            read = self._read(node)
            self._hot_plugged()
            self._sharing.vision_owns()
            self._sharing.robots_share()
            self._sharing.others_are_refused()
            self._released(node)
            self._sharing.all_is_given_back()
        return f'two pods read "{read}" from the device of one claim, charged once'

    def _discovered(self) -> None:
        self._scene.apply("configuration.yaml")
        self._scene.until("the Configuration is accepted", self._accepted)
        self._scene.row("Configuration", "disk", "Accepted: udev rules for loop devices")
        for instance in self._scene.until("both nodes have an Instance", self._instances):
            spec, metadata = instance["spec"], instance["metadata"]
            self._scene.row("Instance", metadata["name"], f"on {', '.join(spec['nodes'])}")
        self._scene.row("", "", "(both nodes run on this machine, so each sees the disk)")
        for pool, devices in self._scene.until("slices show them", lambda: self._pools(1)).items():
            shown = [f"{d['name']}: {_attributes(d)}" for d in devices]
            self._scene.row("ResourceSlice", f"pool {pool}", *shown)
        class_ = self._scene.until(
            "the class is there", lambda: self._scene.get("deviceclass", "disk")
        )
        name = class_["spec"].get("extendedResourceName", "no extended resource")
        self._scene.row("DeviceClass", "disk", f"also as the extended resource {name}")

    def _prepared(self) -> str:
        self._scene.apply("claim.yaml")
        self._scene.apply("reader.yaml")
        claim = self._scene.until("the claim is allocated", self._allocated)
        (result,) = claim["status"]["allocation"]["devices"]["results"]
        node = str(result["pool"])
        self._scene.row(
            "ResourceClaim", "my-disk", f"allocated {result['device']} of {node} to Pod reader"
        )
        uid = str(claim["metadata"]["uid"])
        file = self._scene.until("the claim is prepared", lambda: self._cdi_file(node, uid))
        self._scene.row("prepared", "NodePrepareResources", f"CDI file {file.name}")
        return node

    def _read(self, node: str) -> str:
        self._scene.until_ready("reader")
        environment, read = self._scene.until("the container has read", self._log_lines)[:2]
        self._scene.row("Pod", f"reader on {node}", environment, f"read: {read}")
        return read

    def _hot_plugged(self) -> None:
        start = time.monotonic()
        with plugged_disk(self._folder, "a second one") as disk:
            self._scene.until("the slices show it", lambda: self._pools(2))
            self._scene.row(
                "hot-plug", str(disk.path), f"in both slices after {_milliseconds(start)}"
            )
        start = time.monotonic()
        self._scene.until("the slices show it no more", lambda: self._pools(1))
        self._scene.row("unplug", str(disk.path), f"in no slice after {_milliseconds(start)}")

    def _released(self, node: str) -> None:
        claim = self._scene.get("resourceclaim", "my-disk") or {}
        uid = str(claim["metadata"]["uid"])
        self._scene.delete_pods("stayer", "second", "latecomer")
        self._scene.delete_pods("guest", "reader")
        self._scene.until("the claim is unprepared", lambda: self._cdi_file(node, uid) is None)
        self._scene.row("unprepared", "reader and guest are deleted", "the CDI file is gone")

    def _accepted(self) -> bool:
        status = (self._scene.get("akric", "disk") or {}).get("status", {})
        conditions = status.get("conditions", ())
        return any(c["type"] == "Accepted" and c["status"] == "True" for c in conditions)

    def _instances(self) -> list[Object] | None:
        found = self._cluster.list("akrii", namespace="default")
        return found if len(found) == len(self._cluster.nodes) else None

    def _pools(self, devices: int) -> dict[str, list[Object]] | None:
        """Our devices by pool, when each pool has so many."""
        slices = self._cluster.list("resourceslices")
        pools = {s["spec"]["pool"]["name"]: s["spec"].get("devices") or [] for s in slices}
        complete = pools and all(len(found) == devices for found in pools.values())
        return pools if complete else None

    def _allocated(self) -> Object | None:
        claim = self._scene.get("resourceclaim", "my-disk")
        status = (claim or {}).get("status", {})
        return claim if status.get("allocation") and status.get("reservedFor") else None

    def _cdi_file(self, node: str, uid: str) -> Path | None:
        folder = self._cluster.node(node).path("/run/cdi")
        return next((path for path in folder.glob("*.json") if uid in path.name), None)

    def _log_lines(self) -> list[str] | None:
        lines = self._cluster.kubectl("logs", "reader").stdout.splitlines()
        return lines if len(lines) > 1 else None


def _attributes(device: Object) -> str:
    attributes = device["attributes"]
    return ", ".join(f"{name}={attributes[name]['string']}" for name in ("UDEV_DEVNODE", "FLOOR"))


def _milliseconds(start: float) -> str:
    """As a person would see it: polled through kubectl, so mostly kubectl's own time."""
    return f"{(time.monotonic() - start) * 1000:.0f} ms (asked through kubectl)"
