"""Claims for devices of vendors, pods that use them, and what their containers are told."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from local_cluster.api import BUSYBOX_IMAGE, Cluster
from tests.e2e.vendor_hardware import amounts

SECONDS = 60.0
TOLD = "-- told --"


class Got(NamedTuple):
    """A device of a container: driver, pool and name, and how much of its capacities it is."""

    device: str
    consumed: Mapping[str, int] = {}


def read(line: str) -> Got:
    """What the driver writes: `gpu.example.com/node-a/gpu-1 memory=10Gi`."""
    device, *consumed = line.split()
    return Got(device, amounts(dict(one.split("=") for one in consumed)))


class Story:
    """Claims and pods of one test, in its namespace."""

    def __init__(self, cluster: Cluster, namespace: str) -> None:
        self._cluster = cluster
        self._namespace = namespace

    def claim(self, name: str, *requests: dict[str, Any]) -> None:
        spec = {"devices": {"requests": requests}}
        self._apply("resource.k8s.io/v1", "ResourceClaim", name, spec)

    def pod(self, name: str, claim: str) -> None:
        """A pod that prints what it was told of its devices, and stays."""
        script = f"env | grep ^DEVICE_ | sort; echo {TOLD}; exec sleep 100000"
        container = {
            "name": "main",
            "image": BUSYBOX_IMAGE,
            "imagePullPolicy": "Never",
            "command": ["sh", "-c", script],
            "resources": {"claims": [{"name": "device"}]},
        }
        spec = {
            "terminationGracePeriodSeconds": 0,
            "containers": [container],
            "resourceClaims": [{"name": "device", "resourceClaimName": claim}],
        }
        self._apply("v1", "Pod", name, spec)

    def run(self, name: str, *requests: dict[str, Any]) -> None:
        """A claim for this, and a pod of the same name that uses it."""
        self.claim(name, *requests)
        self.pod(name, name)

    def runs(self, name: str) -> list[Got]:
        """Wait until a pod runs, and return what its container was told."""
        self._cluster.wait(
            f"pod/{name}", "condition=Ready", namespace=self._namespace, seconds=SECONDS
        )

        def told() -> str:
            logs = self._cluster.kubectl("logs", "-n", self._namespace, name).stdout
            return logs if TOLD in logs else ""

        logs = self._cluster.wait_until(f"{name} has told everything", told)
        variables = (line for line in logs.splitlines() if line.startswith("DEVICE_"))
        return [read(variable.partition("=")[2]) for variable in variables]

    def waits(self, name: str) -> None:
        """Wait until kube-scheduler has found no device for a pod."""
        unscheduled = "condition=PodScheduled=False"
        self._cluster.wait(f"pod/{name}", unscheduled, namespace=self._namespace)
        assert not self.results(name)

    def end(self, name: str) -> str:
        """Delete pod and claim; returns the claim's UID."""
        uid = self.uid(name)
        for kind in ("pod", "resourceclaim"):
            self._cluster.kubectl("delete", kind, name, "-n", self._namespace, "--timeout=60s")
        return uid

    def uid(self, claim: str) -> str:
        return str(self._claim(claim)["metadata"]["uid"])

    def results(self, claim: str) -> list[dict[str, Any]]:
        """What a claim was allocated."""
        allocation = self._claim(claim).get("status", {}).get("allocation", {})
        found: list[dict[str, Any]] = allocation.get("devices", {}).get("results", [])
        return found

    def _claim(self, name: str) -> dict[str, Any]:
        found = self._cluster.get("resourceclaim", name, namespace=self._namespace)
        assert found is not None
        return found

    def _apply(self, version: str, kind: str, name: str, spec: Mapping[str, Any]) -> None:
        body = {"apiVersion": version, "kind": kind, "metadata": {"name": name}, "spec": spec}
        self._cluster.apply(body, namespace=self._namespace)


def one(name: str, of_class: str, only: str = "true", **capacity: str) -> dict[str, Any]:
    """A request for a device of a class that CEL selects, or for so much of one."""
    exactly: dict[str, Any] = {
        "deviceClassName": of_class,
        "selectors": [{"cel": {"expression": only}}],
    }
    if capacity:
        exactly["capacity"] = {"requests": capacity}
    return {"name": name, "exactly": exactly}
