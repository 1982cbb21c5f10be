"""One description of a component of ours, rendered as a host process or as a pod.

Tests say what runs, under which identity and what shows that it is ready. Whether it is a
process in a node's namespaces or a pod from an image is one word.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import Any

from local_cluster.configurations import BUSYBOX_IMAGE

LABEL = "moorage.test/component"
VOLUME_NAME = re.compile(r"[^a-z0-9]+")


class Mode(StrEnum):
    """How a component runs."""

    PROCESS = "process"
    POD = "pod"


class Workload(StrEnum):
    """What carries the pod in mode `pod`."""

    POD = "Pod"
    DAEMON_SET = "DaemonSet"
    DEPLOYMENT = "Deployment"


@dataclass(frozen=True)
class HttpReady:
    """Ready when GET answers 200 on the component's node (or in its pod)."""

    port: int
    path: str = "/readyz"
    scheme: str = "http"


@dataclass(frozen=True)
class SocketReady:
    """Ready when something listens on a UNIX socket, named as the component sees it."""

    path: str


Readiness = HttpReady | SocketReady | None


@dataclass(frozen=True, kw_only=True)
class Component:
    """What shall run."""

    name: str
    argv: tuple[str, ...]
    namespace: str = "default"
    service_account: str = "default"
    manifests: tuple[Path | str, ...] = ()
    """Applied first: the ServiceAccount, its RBAC and what else must be there."""
    node: str | None = None
    """The node it runs on. Without one: any node as a pod, node-a as a process."""
    env: Mapping[str, str] = field(default_factory=dict)
    ready: Readiness = None
    cwd: Path | None = None
    """Of the process; an image has its own."""
    workload: Workload = Workload.POD
    image: str = BUSYBOX_IMAGE
    host_paths: tuple[str, ...] = ()
    """Folders of the node that the pod sees under the same path; a process sees all."""
    host_network: bool = False
    privileged: bool = False

    @property
    def reference(self) -> str:
        """Kind and name, as kubectl reads them."""
        return f"{self.workload.lower()}/{self.name}"


def environment(
    component: Component, node: str | None, uid: str, kubeconfig: Path
) -> dict[str, str]:
    """What the downward API tells a pod, for a process."""
    told = {
        "KUBECONFIG": str(kubeconfig),
        # As of pods, no two have one name: replicas on several nodes are told apart by it.
        "POD_NAME": "-".join(filter(None, (component.name, node, "process"))),
        "POD_NAMESPACE": component.namespace,
        "POD_UID": uid,
        "PYTHONUNBUFFERED": "1",
    }
    if node is not None:
        told["NODE_NAME"] = node
    return {**told, **component.env}


def manifest(component: Component) -> dict[str, Any]:
    labels = {LABEL: component.name}
    metadata = {"name": component.name, "namespace": component.namespace, "labels": labels}
    spec = _pod_spec(component)
    if component.workload is Workload.POD:
        return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec}
    template = {"metadata": {"labels": labels}, "spec": spec}
    return {
        "apiVersion": "apps/v1",
        "kind": component.workload.value,
        "metadata": metadata,
        "spec": {"selector": {"matchLabels": labels}, "template": template},
    }


def _pod_spec(component: Component) -> dict[str, Any]:
    spec: dict[str, Any] = {
        "serviceAccountName": component.service_account,
        "hostNetwork": component.host_network,
        "containers": [_container(component)],
        "volumes": [
            {"name": _volume(path), "hostPath": {"path": path, "type": "DirectoryOrCreate"}}
            for path in component.host_paths
        ],
        "terminationGracePeriodSeconds": 10,
    }
    if component.node is not None:
        # A selector, unlike nodeName, leaves the pod to the scheduler and to DaemonSets.
        spec["nodeSelector"] = {"kubernetes.io/hostname": component.node}
    return spec


def _container(component: Component) -> dict[str, Any]:
    container: dict[str, Any] = {
        "name": "main",
        "image": component.image,
        "imagePullPolicy": "Never",
        "command": list(component.argv),
        "env": [*_downward(), *_plain(component.env)],
        "securityContext": {"privileged": component.privileged},
        "volumeMounts": [
            {
                "name": _volume(path),
                "mountPath": path,
                # Mounts that appear later are seen; only the privileged may pass some back.
                "mountPropagation": "HostToContainer",
            }
            for path in component.host_paths
        ],
    }
    if component.ready is not None:
        container["readinessProbe"] = {**_probe(component.ready), "periodSeconds": 1}
    return container


def _downward() -> list[dict[str, Any]]:
    fields = {
        "NODE_NAME": "spec.nodeName",
        "POD_NAME": "metadata.name",
        "POD_NAMESPACE": "metadata.namespace",
        "POD_UID": "metadata.uid",
    }
    return [
        {"name": name, "valueFrom": {"fieldRef": {"fieldPath": path}}}
        for name, path in fields.items()
    ]


def _plain(env: Mapping[str, str]) -> list[dict[str, Any]]:
    return [{"name": name, "value": value} for name, value in env.items()]


def _probe(ready: HttpReady | SocketReady) -> dict[str, Any]:
    if isinstance(ready, SocketReady):
        return {"exec": {"command": ["test", "-S", ready.path]}}
    target = {"port": ready.port, "path": ready.path, "scheme": ready.scheme.upper()}
    return {"httpGet": target}


def _volume(path: str) -> str:
    return VOLUME_NAME.sub("-", path.strip("/").lower()) or "root"
