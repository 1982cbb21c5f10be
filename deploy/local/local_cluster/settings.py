"""What a cluster shall be: one frozen value, made in code, from a file or from flags."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields
from enum import StrEnum
from pathlib import Path
from typing import Any

from local_cluster.errors import SettingsError

KUBERNETES_VERSIONS = ("1.37", "1.36", "1.34", "1.33")
NEWEST = KUBERNETES_VERSIONS[0]
CONTROL_PLANE = ("etcd", "kube-apiserver")
CLUSTER_PARTS = (
    *CONTROL_PLANE,
    "kube-controller-manager",
    "kube-scheduler",
    "kube-scheduler-moorage",
    "kube-proxy",
)
MOORAGE_SCHEDULER = "kube-scheduler-moorage"
PARTS_BESIDE_A_RELEASE = tuple(part for part in CLUSTER_PARTS if part != MOORAGE_SCHEDULER)
"""Of a cluster that gets Moorage by its chart, whose kube-scheduler has the same scheduler name.

Two of one name race for each pod, and the one that does not ask the plugin binds it uncharged.
"""
MAX_NODES = 8


class Profile(StrEnum):
    """A named set of features that makes the newest release look like another."""

    DEFAULT = "default"
    DRA_1_34 = "dra-1.34"


EMULATED_VERSIONS: Mapping[Profile, str | None] = {Profile.DEFAULT: None, Profile.DRA_1_34: "1.34"}
"""`--emulated-version` of API server, controller manager and schedulers: its gates and defaults.

A gate that has become GA is locked, unless a version from before is emulated.
"""

# Of kubelets and kube-proxies, which emulate no version: what is off by default in 1.34 and on in
# the newest, as far as DRA goes. A gate that needs another one is listed with it, or they refuse
# to start; DRAExtendedResource is locked, and the API server drops its fields before they see any.
PROFILE_GATES: Mapping[Profile, Mapping[str, bool]] = {
    Profile.DEFAULT: {},
    Profile.DRA_1_34: {
        "DRAConsumableCapacity": False,
        "DRADeviceBindingConditions": False,
        "DRADeviceTaintRules": False,
        "DRADeviceTaints": False,
        "DRAFractionalCapacityRange": False,
        "DRAPartitionableDevices": False,
        "DRAResourceClaimGranularStatusAuthorization": False,
        "ResourceHealthStatus": False,
        "ResourceHealthStatusMessage": False,
    },
}


@dataclass(frozen=True, kw_only=True)
class ClusterSettings:
    """One cluster. Two with different work folders never meet."""

    work_dir: Path
    kubernetes: str = NEWEST
    kubelets: str | None = None
    """Kubernetes version of the kubelets; None is that of the control plane."""
    profile: Profile = Profile.DEFAULT
    feature_gates: Mapping[str, bool] = field(default_factory=dict)
    apiserver_flags: Mapping[str, str] = field(default_factory=dict)
    """Flag name without dashes to value; replaces the tool's own value of that flag."""
    runtime_config: Mapping[str, str] = field(default_factory=dict)
    """API groups and versions to serve, as kube-apiserver's --runtime-config."""
    nodes: int = 2
    fake_nodes: int = 0
    """Node objects with leases beside the real ones; see `fake_nodes`."""
    parts: tuple[str, ...] = CLUSTER_PARTS
    """Cluster-wide parts. Those of the nodes follow from `nodes`.

    Tests start components as processes and need all; see `PARTS_BESIDE_A_RELEASE` for the rest.
    """
    scheduler_overlay: Mapping[str, Any] = field(default_factory=dict)
    """Fields of the KubeSchedulerConfiguration of `moorage`'s scheduler; `extenders` goes here."""
    kubelet_overlay: Mapping[str, Any] = field(default_factory=dict)
    """Fields of each real node's KubeletConfiguration."""
    kubelet_root: str = "/var/lib/kubelet"
    """Where kubelets keep plugins, sockets and pods; some distributions' lies elsewhere.

    Below one of `layout.OVERLAID_DIRS`, so that it is the node's own.
    """
    audit: bool = True
    own_networks: bool = False
    """Each node has a network namespace of its own, as real ones have; else all share one."""
    udevd: bool = False
    """Run systemd-udevd inside the cluster's network namespace: its events stop at the border."""

    def __post_init__(self) -> None:
        for problem in problems_of(self):
            raise SettingsError(problem)

    @property
    def has_dra_by_hand(self) -> bool:
        """Whether `resource.k8s.io/v1` lacks what Moorage wants before it uses it by itself."""
        return self.kubernetes == "1.34" or self.profile is Profile.DRA_1_34

    @property
    def kubelet_version(self) -> str:
        """Kubernetes version of the kubelets."""
        return self.kubelets or self.kubernetes

    @property
    def emulated_version(self) -> str | None:
        """The version that the control plane emulates."""
        return EMULATED_VERSIONS[self.profile]

    @property
    def node_gates(self) -> Mapping[str, bool]:
        """Of parts that emulate no version: the profile's gates, overridden one by one."""
        return {**PROFILE_GATES[self.profile], **self.feature_gates}


def problems_of(settings: ClusterSettings) -> tuple[str, ...]:
    """Everything that cannot work, as sentences."""
    unknown = sorted(set(settings.parts) - set(CLUSTER_PARTS))
    missing = [part for part in CONTROL_PLANE if part not in settings.parts]
    checks = (
        (
            settings.kubernetes not in KUBERNETES_VERSIONS,
            f"Kubernetes {settings.kubernetes} is not one of {', '.join(KUBERNETES_VERSIONS)}",
        ),
        (
            settings.kubelet_version not in KUBERNETES_VERSIONS,
            f"kubelets {settings.kubelets} is not one of {', '.join(KUBERNETES_VERSIONS)}",
        ),
        (
            minor(settings.kubelet_version) > minor(settings.kubernetes),
            f"kubelets {settings.kubelets} must not be newer than the API server",
        ),
        (bool(unknown), f"unknown parts: {', '.join(unknown)}"),
        (bool(missing), f"nothing works without {', '.join(missing)}"),
        (not 0 <= settings.nodes <= MAX_NODES, f"nodes must be 0 to {MAX_NODES}"),
        (settings.fake_nodes < 0, "fake_nodes must not be negative"),
        (
            settings.profile is not Profile.DEFAULT and settings.kubelet_version != NEWEST,
            f"profile {settings.profile} is made of gates that only {NEWEST} has",
        ),
        (
            settings.udevd and settings.nodes == 0,
            "udevd runs on a node, and this cluster has none",
        ),
    )
    return tuple(sentence for wrong, sentence in checks if wrong)


def minor(version: str) -> int:
    """The 36 of `1.36`."""
    return int(version.rpartition(".")[2])


def settings_from_mapping(values: Mapping[str, Any]) -> ClusterSettings:
    """Read a file's or a record's mapping; unknown keys are errors, not typing mistakes."""
    known = {entry.name for entry in fields(ClusterSettings)}
    if unknown := sorted(set(values) - known):
        raise SettingsError(f"unknown settings: {', '.join(unknown)}")
    if "work_dir" not in values:
        raise SettingsError("work_dir is missing")
    read = dict(values)
    read["work_dir"] = Path(read["work_dir"])
    read["profile"] = _profile(read.get("profile", Profile.DEFAULT))
    read["parts"] = tuple(read.get("parts", CLUSTER_PARTS))
    return ClusterSettings(**read)


def _profile(name: str) -> Profile:
    try:
        return Profile(name)
    except ValueError as error:
        raise SettingsError(f"profile {name} is not one of {', '.join(Profile)}") from error


def settings_to_mapping(settings: ClusterSettings) -> dict[str, Any]:
    """The inverse of `settings_from_mapping`, ready for JSON."""
    values = asdict(settings)
    values["work_dir"] = str(settings.work_dir)
    values["parts"] = list(settings.parts)
    return values
