"""The configuration files of the parts, as JSON: every reader of YAML reads it, too."""

from __future__ import annotations

import json
from collections.abc import Mapping
from ipaddress import IPv4Address, IPv4Network
from pathlib import Path
from typing import Any

from local_cluster.addresses import (
    KUBE_PROXY_HEALTH_PORT,
    KUBELET_HEALTH_PORT,
    KUBELET_PORT,
    PODS,
)

PAUSE_IMAGE = "moorage.test/pause:local"
BUSYBOX_IMAGE = "moorage.test/busybox:local"
BUSYBOX_OF_PAGES = "busybox:1.35"
"""As pages name it: Debian 12's version. A tag, since without one a kubelet always pulls."""

CONTAINERD_SOCKET = "/run/containerd/containerd.sock"


def document(value: Mapping[str, Any]) -> str:
    return json.dumps(value, indent=2, sort_keys=True) + "\n"


def kubeconfig(server: str, ca: Path, user: Mapping[str, str]) -> str:
    """Files are named by absolute path: the kubeconfig may be read from anywhere."""
    cluster = {"server": server, "certificate-authority": str(ca)}
    context = {"cluster": "local", "user": "local"}
    return document(
        {
            "apiVersion": "v1",
            "kind": "Config",
            "clusters": [{"name": "local", "cluster": cluster}],
            "users": [{"name": "local", "user": dict(user)}],
            "contexts": [{"name": "local", "context": context}],
            "current-context": "local",
        }
    )


def certificate_user(pki: Path, name: str) -> dict[str, str]:
    return {
        "client-certificate": str(pki / f"{name}.crt"),
        "client-key": str(pki / f"{name}.key"),
    }


def scheduler(
    name: str, lease: str, kubeconfig_path: Path, overlay: Mapping[str, Any]
) -> dict[str, Any]:
    """A KubeSchedulerConfiguration. Short leases, so that a killed scheduler is back soon."""
    base: dict[str, Any] = {
        "apiVersion": "kubescheduler.config.k8s.io/v1",
        "kind": "KubeSchedulerConfiguration",
        "clientConnection": {"kubeconfig": str(kubeconfig_path), "qps": 1000, "burst": 2000},
        "leaderElection": {
            "leaderElect": True,
            "leaseDuration": "8s",
            "renewDeadline": "6s",
            "retryPeriod": "1s",
            "resourceName": lease,
            "resourceNamespace": "kube-system",
        },
        "profiles": [{"schedulerName": name}],
    }
    return merged(base, overlay)


def merged(base: Mapping[str, Any], overlay: Mapping[str, Any]) -> dict[str, Any]:
    """Objects merge key by key; everything else, lists included, is replaced."""
    result = dict(base)
    for key, value in overlay.items():
        below = result.get(key)
        both = isinstance(below, Mapping) and isinstance(value, Mapping)
        result[key] = merged(below, value) if both and below is not None else value
    return result


def kube_proxy(
    node: str, address: IPv4Address, kubeconfig_path: Path, gates: Mapping[str, bool]
) -> dict[str, Any]:
    """One proxy for all nodes that share the network namespace in which its rules stand."""
    return {
        "apiVersion": "kubeproxy.config.k8s.io/v1alpha1",
        "kind": "KubeProxyConfiguration",
        "bindAddress": str(address),
        "clientConnection": {"kubeconfig": str(kubeconfig_path)},
        "clusterCIDR": str(PODS),
        "conntrack": {
            "maxPerCore": 0,
            "min": 0,
            "tcpCloseWaitTimeout": "0s",
            "tcpEstablishedTimeout": "0s",
        },
        "featureGates": dict(gates),
        "healthzBindAddress": f"{address}:{KUBE_PROXY_HEALTH_PORT}",
        "hostnameOverride": node,
        "iptables": {"minSyncPeriod": "0s", "syncPeriod": "30s"},
        "metricsBindAddress": f"{address}:10249",
        "mode": "iptables",
    }


STATIC_PODS = "/var/lib/kubelet/manifests"
"""Pods that a node runs without being told by the API server, as a control plane's are."""


def kubelet(address: IPv4Address, pki: Path, certificate: str) -> dict[str, Any]:
    """A KubeletConfiguration for a machine that is not the kubelet's own (see the README)."""
    nothing = dict.fromkeys(
        ("imagefs.available", "imagefs.inodesFree", "memory.available", "nodefs.available",
         "nodefs.inodesFree"),
        "0%",
    )  # fmt: skip
    return {
        "apiVersion": "kubelet.config.k8s.io/v1beta1",
        "kind": "KubeletConfiguration",
        "address": str(address),
        "authentication": {
            "anonymous": {"enabled": False},
            "webhook": {"enabled": True, "cacheTTL": "10s"},
            "x509": {"clientCAFile": str(pki / "ca.crt")},
        },
        "authorization": {"mode": "Webhook"},
        "cgroupDriver": "cgroupfs",
        "cgroupsPerQOS": True,
        "containerRuntimeEndpoint": f"unix://{CONTAINERD_SOCKET}",
        "enforceNodeAllocatable": [],
        "evictionHard": nothing,
        "failCgroupV1": False,
        "failSwapOn": False,
        "healthzBindAddress": str(address),
        "healthzPort": KUBELET_HEALTH_PORT,
        "imageGCHighThresholdPercent": 100,
        "localStorageCapacityIsolation": False,
        "makeIPTablesUtilChains": False,
        "nodeStatusUpdateFrequency": "4s",
        "port": KUBELET_PORT,
        "registerNode": True,
        "resolvConf": "/etc/cni/resolv.conf",
        "staticPodPath": STATIC_PODS,
        # SIGKILL and restart are daily business here: find changes of containers soon.
        "syncFrequency": "10s",
        "tlsCertFile": str(pki / f"{certificate}.crt"),
        "tlsPrivateKeyFile": str(pki / f"{certificate}.key"),
        "volumePluginDir": "/var/lib/kubelet/volume-plugins",
    }


def containerd(cni_programs: Path) -> str:
    """restrict_oom_score_adj: without CAP_SYS_RESOURCE runc may not lower the score, and dies."""
    return f"""\
version = 3
root = "/var/lib/containerd"
state = "/run/containerd"

[grpc]
  address = "{CONTAINERD_SOCKET}"

[plugins.'io.containerd.cri.v1.runtime']
  cdi_spec_dirs = ["/etc/cdi", "/var/run/cdi"]
  restrict_oom_score_adj = true

[plugins.'io.containerd.cri.v1.runtime'.cni]
  bin_dirs = ["{cni_programs}"]
  conf_dir = "/etc/cni/net.d"

[plugins.'io.containerd.cri.v1.images'.pinned_images]
  sandbox = "{PAUSE_IMAGE}"
"""


def cni(pods: IPv4Network) -> dict[str, Any]:
    """Point-to-point links; the route is what lets pods reach service addresses."""
    return {
        "cniVersion": "1.0.0",
        "name": "moorage",
        "plugins": [
            {
                "type": "ptp",
                "ipMasq": True,
                "ipam": {
                    "type": "host-local",
                    "dataDir": "/var/lib/cni/networks",
                    "ranges": [[{"subnet": str(pods)}]],
                    "routes": [{"dst": "0.0.0.0/0"}],
                },
            },
            {"type": "portmap", "capabilities": {"portMappings": True}},
        ],
    }


def audit_policy() -> dict[str, Any]:
    """Metadata of everything; both bodies of what the scheduler and the drivers decide by."""
    writes = ["create", "update", "patch", "delete", "deletecollection"]
    bodies = [
        {"group": "", "resources": ["pods", "pods/status", "pods/binding"]},
        {
            "group": "resource.k8s.io",
            "resources": ["resourceclaims", "resourceclaims/status", "resourceslices"],
        },
    ]
    return {
        "apiVersion": "audit.k8s.io/v1",
        "kind": "Policy",
        "omitStages": ["RequestReceived"],
        "rules": [
            # Of Leases only what Moorage's accounts do, which may do little.
            {
                "level": "Metadata",
                "userGroups": ["system:serviceaccounts:moorage-system"],
                "resources": [{"group": "coordination.k8s.io"}],
            },
            {"level": "None", "resources": [{"group": "coordination.k8s.io"}]},
            {"level": "None", "nonResourceURLs": ["/healthz*", "/readyz*", "/livez*"]},
            {"level": "RequestResponse", "verbs": writes, "resources": bodies},
            {"level": "Metadata"},
        ],
    }
