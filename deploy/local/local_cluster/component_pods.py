"""Components as pods, seen through kubectl and, for SIGKILL, through the node's containerd."""

from __future__ import annotations

import json
from collections.abc import Callable
from subprocess import CompletedProcess
from typing import Any

from local_cluster import components
from local_cluster.components import Component, Workload
from local_cluster.errors import ConditionTimeoutError
from local_cluster.health import wait_until
from local_cluster.kubectl import as_text

READY_SECONDS = 60.0
Kubectl = Callable[..., CompletedProcess[str]]
KillContainer = Callable[[str, str], None]


class ComponentPods:
    """A component as a Pod, DaemonSet or Deployment."""

    def __init__(
        self, kubectl: Kubectl, kill_container: KillContainer, component: Component
    ) -> None:
        self._kubectl = kubectl
        self._kill_container = kill_container
        self._component = component
        self._namespace = ("--namespace", component.namespace)
        self._selector = ("--selector", f"{components.LABEL}={component.name}")

    @property
    def name(self) -> str:
        return self._component.reference

    def start(self) -> None:
        self._kubectl("apply", "-f", "-", stdin=as_text(components.manifest(self._component)))

    def stop(self) -> None:
        self._kubectl(
            *("delete", self.name, *self._namespace, "--ignore-not-found", "--wait"),
            "--cascade=foreground",
        )

    def kill(self) -> None:
        """Every container of it; the kubelets start them again."""
        for pod in self._pods():
            for status in pod["status"].get("containerStatuses", []):
                container = str(status.get("containerID", "")).removeprefix("containerd://")
                if container:
                    self._kill_container(pod["spec"]["nodeName"], container)

    def restart(self) -> None:
        if self._component.workload is Workload.POD:
            self.stop()
            self.start()
        else:
            self._kubectl("rollout", "restart", self.name, *self._namespace)

    def wait_ready(self, seconds: float = READY_SECONDS) -> None:
        if not wait_until(self._is_ready, seconds):
            described = self._kubectl("describe", "pods", *self._namespace, *self._selector)
            raise ConditionTimeoutError(
                f"{self.name} is not ready in {seconds:.0f} s\n{described.stdout}\n{self.logs()}"
            )

    def logs(self) -> str:
        options = ("--prefix", "--tail=-1", "--ignore-errors")
        done = self._kubectl("logs", *self._namespace, *self._selector, *options, check=False)
        return str(done.stdout)

    def _is_ready(self) -> bool:
        if self._component.workload is Workload.POD:
            pods = self._pods()
            return bool(pods) and all(_is_ready(pod) for pod in pods)
        status = ("rollout", "status", self.name, *self._namespace, "--timeout=1s")
        return bool(self._kubectl(*status, check=False).returncode == 0)

    def _pods(self) -> list[dict[str, Any]]:
        done = self._kubectl("get", "pods", *self._namespace, *self._selector, "-o", "json")
        items: list[dict[str, Any]] = json.loads(done.stdout)["items"]
        return [pod for pod in items if "deletionTimestamp" not in pod["metadata"]]


def _is_ready(pod: dict[str, Any]) -> bool:
    conditions = pod["status"].get("conditions", [])
    return any(entry["type"] == "Ready" and entry["status"] == "True" for entry in conditions)
