"""A vendor's DRA driver on a node of the cluster: upstream's helper, and a profile of hardware.

Its program is `deploy/local/programs/vendor-devices`. Moorage knows it by its slices alone.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from local_cluster.api import Cluster, Component, ComponentHandle, SocketReady
from local_cluster.go_toolchain import ensure_built
from local_cluster.programs import VENDOR_DEVICES
from tests.e2e.vendor_hardware import Slice

ACCOUNT = "vendor-devices"
NAMESPACE = "vendor-devices"
PROFILE_FIELDS = ("sharedCounters", "devices")


@dataclass(frozen=True)
class VendorDriver:
    """One driver on one node, and the file that says which hardware it finds there."""

    cluster: Cluster
    name: str
    node: str
    profile: Path
    handle: ComponentHandle

    def slices(self) -> list[dict[str, Any]]:
        """Its ResourceSlices of this node, in the order that its profile gives them."""
        found = (
            one
            for one in self.cluster.list("resourceslices")
            if (one["spec"]["driver"], one["spec"].get("nodeName")) == (self.name, self.node)
        )
        return sorted(found, key=lambda one: str(one["metadata"]["name"]))

    def published(self) -> list[Slice]:
        """What of its profile stands in the API server."""
        specs = [one["spec"] for one in self.slices()]
        return [{name: spec[name] for name in PROFILE_FIELDS if name in spec} for spec in specs]

    def wait_published(self) -> None:
        """Raises with the log's end once the driver has ended."""
        wanted: list[Slice] = json.loads(self.profile.read_text())["slices"]

        def all_of_it() -> bool:
            self.handle.wait_ready()
            return self.published() == wanted

        self.cluster.wait_until(f"all slices of {self.name} are published", all_of_it)

    def replace_hardware(self, slices: Sequence[Slice]) -> None:
        """Other hardware on the node, which the driver finds when it starts anew."""
        write_profile(self.profile, slices)
        self.handle.restart()
        self.wait_published()

    def cdi_files(self, claim_uid: str) -> list[Path]:
        """Those of a claim that is prepared on the node."""
        return list(self.cluster.node(self.node).path("/run/cdi").glob(f"*{claim_uid}*"))


@contextmanager
def running(
    cluster: Cluster, name: str, slices: Sequence[Slice], node: str = "node-a"
) -> Iterator[VendorDriver]:
    """A driver that has published this hardware; afterwards its slices and class are gone."""
    driver = start(cluster, name, slices, node)
    try:
        driver.wait_published()
        yield driver
    finally:
        remove(driver)


def start(cluster: Cluster, name: str, slices: Sequence[Slice], node: str) -> VendorDriver:
    """A driver that may not have published anything yet."""
    cluster.apply([*account(), device_class(name)])
    profile = cluster.work_dir / f"{name}-{node}.json"
    write_profile(profile, slices)
    handle = cluster.start_component(component(name, node, profile))
    return VendorDriver(cluster, name, node, profile, handle)


def remove(driver: VendorDriver) -> None:
    """End a driver, and delete its slices: the kubelet would do so half a minute later.

    The class goes with the driver's last slice, which may be one of another node.
    """
    driver.handle.stop()
    for one in driver.slices():
        name = one["metadata"]["name"]
        driver.cluster.kubectl("delete", "resourceslice", name, "--ignore-not-found")
    left = {one["spec"]["driver"] for one in driver.cluster.list("resourceslices")}
    if driver.name not in left:
        driver.cluster.kubectl("delete", "deviceclass", driver.name, "--ignore-not-found")


def write_profile(path: Path, slices: Sequence[Slice]) -> None:
    path.write_text(json.dumps({"slices": list(slices)}))


def component(name: str, node: str, profile: Path) -> Component:
    """The driver as a process of the node."""
    program = ensure_built(VENDOR_DEVICES) / "vendor-devices"
    return Component(
        name=name,
        argv=(str(program), f"--driver-name={name}", f"--profile={profile}"),
        namespace=NAMESPACE,
        service_account=ACCOUNT,
        node=node,
        ready=SocketReady(f"/var/lib/kubelet/plugins_registry/{name}-reg.sock"),
    )


def device_class(driver: str) -> dict[str, Any]:
    """All devices of a driver, by a class of its name."""
    return {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "DeviceClass",
        "metadata": {"name": driver},
        "spec": {"selectors": [{"cel": {"expression": f'device.driver == "{driver}"'}}]},
    }


def account() -> list[dict[str, Any]]:
    """What drivers of this kind may do: upstream's helper needs no more."""
    slices = ("list", "watch", "create", "update", "delete")
    rules = [
        _rule("resource.k8s.io", "resourceslices", *slices),
        _rule("resource.k8s.io", "resourceclaims", "get"),
        _rule("", "nodes", "get"),
    ]
    group = "rbac.authorization.k8s.io"
    role = {"apiGroup": group, "kind": "ClusterRole", "name": ACCOUNT}
    subject = {"kind": "ServiceAccount", "namespace": NAMESPACE, "name": ACCOUNT}
    named = {"metadata": {"name": ACCOUNT}}
    return [
        {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}},
        {"apiVersion": f"{group}/v1", "kind": "ClusterRole", **named, "rules": rules},
        {
            "apiVersion": f"{group}/v1",
            "kind": "ClusterRoleBinding",
            **named,
            "roleRef": role,
            "subjects": [subject],
        },
    ]


def _rule(group: str, resource: str, *verbs: str) -> dict[str, Any]:
    return {"apiGroups": [group], "resources": [resource], "verbs": list(verbs)}
