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
"""The volume for certificates that a kubeconfig holds inline: TLS needs them as files."""

IGNORED = ("--kubeconfig", "--config")
"""Flags of kube-scheduler that its configuration file replaces."""

_ALIVE = """\
from http.client import HTTPConnection
plugin = HTTPConnection("{host}", {port}, timeout=4)
plugin.request("GET", "/healthz")
raise SystemExit(plugin.getresponse().status != 200)
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Sidecar:
    """The plugin's container beside kube-scheduler.

    Attributes:
        image: Moorage's image.
        folder: A folder of the host with kube-scheduler's configuration `scheduler.yaml` and the
            plugin's kubeconfig `plugin.conf`; both containers see it under the same path.
        flags: Flags of `serve`, beside the kubeconfig.
        pages: The address of `--pages-address` in these flags, where the plugin answers probes.
    """

    image: str
    folder: str
    flags: Sequence[str]
    pages: Listening


def with_plugin(manifest: object, sidecar: Sidecar) -> dict[str, Any]:
    """The manifest of a static pod with the plugin; a changed manifest stays the same.

    Raises:
        ValueError: If it is not a Pod with a container `kube-scheduler`.
    """
    if not isinstance(manifest, Mapping) or manifest.get("kind") != "Pod":
        raise ValueError("kind: must be Pod")
    spec = dict(manifest.get("spec") or {})
    containers = [c for c in spec.get("containers") or () if c.get("name") != PLUGIN]
    if not any(c.get("name") == KUBE_SCHEDULER for c in containers):
        raise ValueError(f"spec.containers: the pod has no container {KUBE_SCHEDULER}")
    spec["containers"] = [
        *(_configured(c, sidecar) if c["name"] == KUBE_SCHEDULER else c for c in containers),
        _container(sidecar),
    ]
    volume = {"name": FOLDER, "hostPath": {"path": sidecar.folder, "type": "Directory"}}
    scratch = {"name": SCRATCH, "emptyDir": {"medium": "Memory", "sizeLimit": "1Mi"}}
    spec["volumes"] = [*_others(spec.get("volumes")), volume, scratch]
    return {**manifest, "spec": spec}


def _configured(container: Mapping[str, Any], sidecar: Sidecar) -> dict[str, Any]:
    """The container kube-scheduler with `--config` in place of the flags that it replaces."""
    where = "command" if any("=" in word for word in container.get("command") or ()) else "args"
    words = [w for w in container.get(where) or () if w.partition("=")[0] not in IGNORED]
    if set(IGNORED).intersection(container.get(where) or ()):
        raise ValueError(
            f"{KUBE_SCHEDULER}.{where}: write {' and '.join(IGNORED)} with = between name and value"
        )
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
    """The plugin's container: root without capabilities, since root owns its files."""
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
    """A probe inside the container: a kubelet's HTTP probe does not reach a loopback address."""
    asks = _ALIVE.format(host=_reached_at(pages.host), port=pages.port)
    return {"exec": {"command": ["python3.13", "-IS", "-c", asks]}, "timeoutSeconds": 5}


def _reached_at(host: str) -> str:
    """The address at which a process of the same pod reaches a listener at this one."""
    if not host:
        return "127.0.0.1"
    address = ip_address(host)
    if not address.is_unspecified:
        return host
    return "127.0.0.1" if address.version == 4 else "::1"
