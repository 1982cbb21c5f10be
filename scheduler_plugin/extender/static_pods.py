"""The static pod of a control plane's kube-scheduler, with the plugin beside it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from ipaddress import ip_address
from typing import Any

from scheduler_plugin.extender.listening import Listening

KUBE_SCHEDULER = "kube-scheduler"
PLUGIN = "moorage-scheduler-plugin"
FOLDER = "moorage"
SCRATCH = "moorage-tmp"
"""Where what a kubeconfig holds in itself becomes files, as TLS takes them."""

IGNORED = ("--kubeconfig", "--config")
"""Flags of kube-scheduler that its configuration stands for."""

_ALIVE = """\
from http.client import HTTPConnection
plugin = HTTPConnection("{host}", {port}, timeout=4)
plugin.request("GET", "/healthz")
raise SystemExit(plugin.getresponse().status != 200)
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Sidecar:
    """What is put beside kube-scheduler.

    Attributes:
        image: Of Moorage.
        folder: On the host, with kube-scheduler's configuration `scheduler.yaml` and the plugin's
            kubeconfig `plugin.conf`; both containers see it under the same path.
        flags: Of `serve`, beside the kubeconfig.
        pages: Where `--pages-address` among them has the plugin answer its probes.
    """

    image: str
    folder: str
    flags: Sequence[str]
    pages: Listening


def with_plugin(manifest: object, sidecar: Sidecar) -> dict[str, Any]:
    """The manifest of a static pod, changed; of one that is changed already, the same again.

    Raises:
        ValueError: If it is no pod with a container `kube-scheduler`.
    """
    if not isinstance(manifest, Mapping) or manifest.get("kind") != "Pod":
        raise ValueError("it is no Pod")
    spec = dict(manifest.get("spec") or {})
    containers = [c for c in spec.get("containers") or () if c.get("name") != PLUGIN]
    if not any(c.get("name") == KUBE_SCHEDULER for c in containers):
        raise ValueError(f"the pod has no container {KUBE_SCHEDULER}")
    spec["containers"] = [
        *(_configured(c, sidecar) if c["name"] == KUBE_SCHEDULER else c for c in containers),
        _container(sidecar),
    ]
    volume = {"name": FOLDER, "hostPath": {"path": sidecar.folder, "type": "Directory"}}
    scratch = {"name": SCRATCH, "emptyDir": {"medium": "Memory", "sizeLimit": "1Mi"}}
    spec["volumes"] = [*_others(spec.get("volumes")), volume, scratch]
    return {**manifest, "spec": spec}


def _configured(container: Mapping[str, Any], sidecar: Sidecar) -> dict[str, Any]:
    """kube-scheduler with a file for its configuration."""
    where = "command" if any("=" in word for word in container.get("command") or ()) else "args"
    words = [w for w in container.get(where) or () if w.partition("=")[0] not in IGNORED]
    if set(IGNORED).intersection(container.get(where) or ()):
        raise ValueError(f"write {' and '.join(IGNORED)} with = between name and value")
    return {
        **container,
        where: [*words, f"--config={sidecar.folder}/scheduler.yaml"],
        "volumeMounts": [*_others(container.get("volumeMounts")), _mount(sidecar)],
    }


def _others(found: Sequence[Mapping[str, Any]] | None) -> list[Mapping[str, Any]]:
    return [one for one in found or () if one["name"] not in (FOLDER, SCRATCH)]


def _mount(sidecar: Sidecar) -> dict[str, Any]:
    return {"name": FOLDER, "mountPath": sidecar.folder, "readOnly": True}


def _container(sidecar: Sidecar) -> dict[str, Any]:
    """The plugin, as root without rights: the files of a control plane are root's."""
    kubeconfig = f"--kubeconfig={sidecar.folder}/plugin.conf"
    alive = _alive(sidecar.pages)
    return {
        "name": PLUGIN,
        "image": sidecar.image,
        "command": [PLUGIN, "serve", kubeconfig, *sidecar.flags],
        "startupProbe": {**alive, "periodSeconds": 1, "failureThreshold": 60},
        "livenessProbe": {**alive, "periodSeconds": 10, "failureThreshold": 2},
        "resources": {"requests": {"cpu": "100m", "memory": "128Mi"}, "limits": {"memory": "1Gi"}},
        "securityContext": {
            "allowPrivilegeEscalation": False,
            "capabilities": {"drop": ["ALL"]},
            "readOnlyRootFilesystem": True,
            "runAsUser": 0,
        },
        "volumeMounts": [_mount(sidecar), {"name": SCRATCH, "mountPath": "/tmp"}],
    }


def _alive(pages: Listening) -> dict[str, Any]:
    """On loopback a kubelet's own probes do not reach it, so that the container asks itself."""
    asks = _ALIVE.format(host=_reached_at(pages.host), port=pages.port)
    return {"exec": {"command": ["python3.11", "-IS", "-c", asks]}, "timeoutSeconds": 5}


def _reached_at(host: str) -> str:
    """The address at which a process of the same pod reaches who listens at this one."""
    if not host:
        return "127.0.0.1"
    address = ip_address(host)
    if not address.is_unspecified:
        return host
    return "127.0.0.1" if address.version == 4 else "::1"
