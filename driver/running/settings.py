"""Settings of `moorage-driver`: its command line and environment, parsed once.

Nothing else reads flags or environment variables.
"""

from __future__ import annotations

import argparse
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path

from driver.api import NodeName
from driver.discovery.handlers import HANDLER_NAMES
from driver.discovery.reach import Reach
from driver.handlers.limits import HandlerLimits
from driver.handlers.sdk_requests import TlsFiles
from driver.offer_paths import OfferPath
from driver.running.arguments import parser_of
from driver.running.metrics_address import Address
from driver.running.permissions_settings import PermissionsSettings, permissions_settings


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
        rescan_interval: The safety net under the events of the kernel.
        rediscovery_interval: How often networks are asked for their devices.
        reach: Which addresses that strangers tell of are asked.
        debug_echo_file: While it says OFFLINE, the debugEcho handler finds nothing.
        debug_echo_shared: Whether debugEcho's devices are shared where the details do not say.
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
    rescan_interval: timedelta
    rediscovery_interval: timedelta
    reach: Reach
    debug_echo_file: Path
    debug_echo_shared: bool
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
        rescan_interval: See `NodeSettings`.
        rediscovery_interval: See `NodeSettings`.
        reach: See `NodeSettings`.
        debug_echo_file: See `NodeSettings`.
        debug_echo_shared: See `NodeSettings`.
    """

    name: str
    log_level: str
    folder: Path
    address: str | None
    tls: TlsFiles | None
    rescan_interval: timedelta
    rediscovery_interval: timedelta
    reach: Reach
    debug_echo_file: Path
    debug_echo_shared: bool


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


Settings = NodeSettings | SharedSettings | HandlerProcessSettings | PermissionsSettings


def parse_settings(argv: Sequence[str], environ: Mapping[str, str]) -> Settings:
    """Settings from the command line; flags win over the environment.

    Raises:
        SystemExit: With argparse's message, on flags that make no sense.
    """
    parser = parser_of(environ)
    arguments = parser.parse_args(argv)
    if problem := _tls_problem(arguments):
        parser.error(problem)
    if arguments.command == "handler":
        return _handler_settings(arguments)
    if arguments.command == "permissions":
        return permissions_settings(arguments)
    common = {
        "kubeconfig": arguments.kubeconfig,
        "log_level": arguments.log_level,
        "unique_devices_default": arguments.unique_devices_default == "true",
        "path": OfferPath(arguments.path),
        "metrics_address": arguments.metrics_address,
    }
    if arguments.command == "shared":
        return SharedSettings(
            namespace=arguments.namespace,
            identity=arguments.identity,
            lost_node_grace=arguments.lost_node_grace,
            instance_classes=arguments.instance_classes,
            **common,
        )
    return NodeSettings(
        node=NodeName(arguments.node_name),
        pod_uid=arguments.pod_uid,
        kubelet_root=arguments.kubelet_root,
        cdi_root=arguments.cdi_root,
        rescan_interval=arguments.rescan_interval,
        rediscovery_interval=arguments.rediscovery_interval,
        reach=Reach(arguments.discovery_networks, arguments.service_networks),
        debug_echo_file=arguments.debug_echo_file,
        debug_echo_shared=arguments.debug_echo_shared == "true",
        embedded_handlers=arguments.embedded_handlers,
        network_handlers_folder=arguments.network_handlers_folder,
        network_handlers_group=arguments.network_handlers_group,
        handler_limits=_limits(arguments),
        handler_tls=_tls(arguments, "handler_tls"),
        registration_socket=arguments.handler_registration_socket,
        **common,
    )


def _handler_settings(arguments: argparse.Namespace) -> HandlerProcessSettings:
    return HandlerProcessSettings(
        name=arguments.name,
        log_level=arguments.log_level,
        folder=arguments.folder,
        address=arguments.address or None,
        tls=_tls(arguments, "tls"),
        rescan_interval=arguments.rescan_interval,
        rediscovery_interval=arguments.rediscovery_interval,
        reach=Reach(arguments.discovery_networks, arguments.service_networks),
        debug_echo_file=arguments.debug_echo_file,
        debug_echo_shared=arguments.debug_echo_shared == "true",
    )


def _limits(arguments: argparse.Namespace) -> HandlerLimits:
    allowed = arguments.external_handlers
    if allowed is None:
        allowed = frozenset(HANDLER_NAMES) - arguments.embedded_handlers
    return HandlerLimits(
        device_paths=arguments.handler_device_paths,
        mount_paths=arguments.handler_mount_paths,
        reserved=frozenset(HANDLER_NAMES) - allowed,
        most_devices=arguments.handler_most_devices,
    )


def _tls_files(arguments: argparse.Namespace, prefix: str) -> list[str]:
    return [getattr(arguments, f"{prefix}_{part}", "") for part in ("ca", "cert", "key")]


def _tls(arguments: argparse.Namespace, prefix: str) -> TlsFiles | None:
    files = _tls_files(arguments, prefix)
    return TlsFiles(*map(Path, files)) if all(files) else None


def _tls_problem(arguments: argparse.Namespace) -> str:
    for prefix in ("handler_tls", "tls"):
        files = _tls_files(arguments, prefix)
        if any(files) and not all(files):
            flag = f"--{prefix.replace('_', '-')}"
            return f"{flag}-ca, {flag}-cert and {flag}-key: all of them, or none"
    return ""
