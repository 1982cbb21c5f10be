"""Settings of `moorage-driver`, as its commands are told them; see `arguments`."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path

from driver.api import NodeName
from driver.configurations.permissions import Account
from driver.discovery.handlers import HandlerSettings
from driver.handlers.limits import HandlerLimits
from driver.handlers.sdk_requests import TlsFiles
from driver.offer_paths import OfferPath
from driver.running.metrics_address import Address

STDIN = "-"


@dataclass(frozen=True, slots=True, kw_only=True)
class CommonSettings:
    """What both commands need.

    Attributes:
        kubeconfig: None for the ServiceAccount of the pod.
        unique_devices_default: What `spec.uniqueDevices` means where it is absent.
        path: By which of the kubelet's contracts devices are offered.
        metrics_address: Where metrics and health are told; None for nowhere.
    """

    kubeconfig: Path | None
    log_level: str
    unique_devices_default: bool
    path: OfferPath
    metrics_address: Address | None


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeSettings(CommonSettings):
    """Settings of `moorage-driver node`.

    Attributes:
        pod_uid: Makes the sockets' names unique, so that an old and a new pod of the DaemonSet
            may overlap; empty outside a pod.
        kubelet_root: The kubelet's `--root-dir`, as this process sees it.
        cdi_root: Where the container runtime looks for dynamic CDI files.
        discovery: What the handlers in this process are told.
        embedded_handlers: Names of the discovery handlers that run in this process.
        network_handlers_folder: Where handlers of networks register that have no privileges; None
            for nowhere.
        network_handlers_group: Whose that is.
        handler_limits: What handlers of other processes may be, give and have.
        handler_tls: What handlers on the network are shown, and asked for; None if nothing is.
        registration_socket: Where other discovery handlers register; None for nowhere.
    """

    node: NodeName
    pod_uid: str
    kubelet_root: Path
    cdi_root: Path
    discovery: HandlerSettings
    embedded_handlers: frozenset[str]
    network_handlers_folder: Path | None
    network_handlers_group: int
    handler_limits: HandlerLimits
    handler_tls: TlsFiles | None
    registration_socket: Path | None


@dataclass(frozen=True, slots=True, kw_only=True)
class HandlerProcessSettings:
    """Settings of `moorage-driver handler`.

    Attributes:
        name: Of the handler.
        folder: Where the agent's socket is, and the handler's own.
        address: Of the network, where it listens instead; None for a socket.
        tls: What it shows and asks for there; None to speak in the clear.
        discovery: What it is told.
    """

    name: str
    log_level: str
    folder: Path
    address: str | None
    tls: TlsFiles | None
    discovery: HandlerSettings


@dataclass(frozen=True, slots=True, kw_only=True)
class SharedSettings(CommonSettings):
    """Settings of `moorage-driver shared`.

    Attributes:
        namespace: Where its Lease is.
        identity: The holder's name in the Lease; unique per process.
        lost_node_grace: How long a node may be away and keep its slots.
        instance_classes: Whether each Instance has a DeviceClass of its own.
    """

    namespace: str
    identity: str
    lost_node_grace: timedelta
    instance_classes: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class PermissionsSettings:
    """Settings of `moorage-driver permissions`.

    Attributes:
        files: With Configurations, `-` for the standard input; none for those of the cluster.
        kubeconfig: None for the ServiceAccount of the pod.
        account: Who is to be allowed to read.
    """

    files: tuple[str, ...]
    kubeconfig: Path | None
    log_level: str
    account: Account


Settings = NodeSettings | SharedSettings | HandlerProcessSettings | PermissionsSettings
