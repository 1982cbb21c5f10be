"""Settings of `moorage-driver`: its command line and environment, parsed once.

Nothing else reads flags or environment variables.
"""

from __future__ import annotations

import argparse
import os
import socket
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path

from driver.api import NodeName
from driver.discovery.handlers import DEBUG_ECHO_FILE, HANDLER_NAMES
from driver.durations import parse_duration
from driver.handler_requests import AGENT_FOLDER, AGENT_SOCKET, NETWORK_PORT, place_from
from driver.metrics_address import DEFAULT as DEFAULT_METRICS_ADDRESS
from driver.metrics_address import Address, parse_address
from driver.offer_paths import OfferPath
from driver.permissions_settings import (
    PermissionsSettings,
    permissions_arguments,
    permissions_settings,
)


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
        debug_echo_file: While it says OFFLINE, the debugEcho handler finds nothing.
        debug_echo_shared: Whether debugEcho's devices are shared where the details do not say.
        embedded_handlers: Names of the discovery handlers that run in this process.
        registration_socket: Where other discovery handlers register; None for nowhere.
    """

    node: NodeName
    pod_uid: str
    kubelet_root: Path
    cdi_root: Path
    rescan_interval: timedelta
    rediscovery_interval: timedelta
    debug_echo_file: Path
    debug_echo_shared: bool
    embedded_handlers: frozenset[str]
    registration_socket: Path | None


@dataclass(frozen=True, slots=True, kw_only=True)
class HandlerProcessSettings:
    """Settings of `moorage-driver handler`.

    Attributes:
        name: Of the handler.
        folder: Where the agent's socket is, and the handler's own.
        address: Of the network, where it listens instead; None for a socket.
        rescan_interval: See `NodeSettings`.
        rediscovery_interval: See `NodeSettings`.
        debug_echo_file: See `NodeSettings`.
        debug_echo_shared: See `NodeSettings`.
    """

    name: str
    log_level: str
    folder: Path
    address: str | None
    rescan_interval: timedelta
    rediscovery_interval: timedelta
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
    arguments = _parser(environ).parse_args(argv)
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
        debug_echo_file=arguments.debug_echo_file,
        debug_echo_shared=arguments.debug_echo_shared == "true",
        embedded_handlers=arguments.embedded_handlers,
        registration_socket=arguments.handler_registration_socket,
        **common,
    )


def _handler_settings(arguments: argparse.Namespace) -> HandlerProcessSettings:
    return HandlerProcessSettings(
        name=arguments.name,
        log_level=arguments.log_level,
        folder=arguments.folder,
        address=arguments.address or None,
        rescan_interval=arguments.rescan_interval,
        rediscovery_interval=arguments.rediscovery_interval,
        debug_echo_file=arguments.debug_echo_file,
        debug_echo_shared=arguments.debug_echo_shared == "true",
    )


def _parser(environ: Mapping[str, str]) -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="moorage-driver", description="Publish the devices of nodes and prepare claims."
    )
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    _node_arguments(commands.add_parser("node", help="serve one node: run it on each"), environ)
    _shared_arguments(
        commands.add_parser("shared", help="serve the cluster: run one, or several elected"),
        environ,
    )
    _handler_arguments(
        commands.add_parser("handler", help="one discovery handler in a process of its own"),
        environ,
    )
    permissions = commands.add_parser(
        "permissions", help="print the Roles by which drivers may read what Configurations name"
    )
    permissions_arguments(permissions, environ)
    _kubeconfig_argument(permissions, environ)
    _log_argument(permissions)
    return parser


def _node_arguments(parser: argparse.ArgumentParser, environ: Mapping[str, str]) -> None:
    _common_arguments(parser, environ)
    node = environ.get("NODE_NAME", "")
    parser.add_argument(
        "--node-name",
        default=node,
        type=_not_empty,
        required=not node,
        help="name of the Node object this process runs on (default: $NODE_NAME)",
    )
    parser.add_argument("--pod-uid", default=environ.get("POD_UID", ""), help="default: $POD_UID")
    parser.add_argument(
        "--kubelet-root", default=Path("/var/lib/kubelet"), type=Path, metavar="DIR"
    )
    parser.add_argument("--cdi-root", default=Path("/var/run/cdi"), type=Path, metavar="DIR")
    parser.add_argument(
        "--embedded-handlers",
        default=frozenset(HANDLER_NAMES),
        type=_handler_names,
        metavar="NAMES",
        help="discovery handlers that run in this process, with commas between them; the others"
        f" are waited for (default: {','.join(HANDLER_NAMES)})",
    )
    parser.add_argument(
        "--handler-registration-socket",
        default=AGENT_FOLDER / AGENT_SOCKET,
        type=_path_or_none,
        metavar="FILE",
        help="where discovery handlers of other processes register; empty: nowhere"
        f" (default: {AGENT_FOLDER / AGENT_SOCKET})",
    )
    _discovery_arguments(parser, environ)


def _handler_arguments(parser: argparse.ArgumentParser, environ: Mapping[str, str]) -> None:
    place = place_from(environ)
    parser.add_argument("name", choices=HANDLER_NAMES, metavar="NAME", help="|".join(HANDLER_NAMES))
    parser.add_argument(
        "--folder",
        default=place.folder,
        type=Path,
        metavar="DIR",
        help="of the agent's socket and the handler's own"
        f" (default: $DISCOVERY_HANDLERS_DIRECTORY, else {AGENT_FOLDER})",
    )
    parser.add_argument(
        "--address",
        default=place.address,
        metavar="HOST:PORT",
        help="listen on the network, and not at a socket"
        f" (default: $POD_IP and port {NETWORK_PORT}, if that is set)",
    )
    _log_argument(parser)
    _discovery_arguments(parser, environ)


def _discovery_arguments(parser: argparse.ArgumentParser, environ: Mapping[str, str]) -> None:
    parser.add_argument(
        "--rescan-interval",
        default=timedelta(seconds=60),
        type=_duration,
        help="how often all devices are read anew, beside the kernel's events (default: 60s)",
    )
    parser.add_argument(
        "--rediscovery-interval",
        default=timedelta(seconds=10),
        type=_duration,
        help="how often networks are asked for cameras and OPC UA servers (default: 10s)",
    )
    parser.add_argument(
        "--debug-echo-file",
        default=DEBUG_ECHO_FILE,
        type=Path,
        metavar="FILE",
        help=f"while it says OFFLINE, debugEcho finds nothing (default: {DEBUG_ECHO_FILE})",
    )
    parser.add_argument(
        "--debug-echo-shared",
        default=environ.get("DEBUG_ECHO_INSTANCES_SHARED") or "true",
        choices=("true", "false"),
        help="whether nodes share debugEcho's devices, where the details do not say"
        " (default: $DEBUG_ECHO_INSTANCES_SHARED, else true)",
    )


def _shared_arguments(parser: argparse.ArgumentParser, environ: Mapping[str, str]) -> None:
    _common_arguments(parser, environ)
    parser.add_argument(
        "--namespace",
        default=environ.get("POD_NAMESPACE", "moorage-system"),
        help="namespace of the Lease (default: $POD_NAMESPACE, else moorage-system)",
    )
    identity = f"{environ.get('POD_NAME') or socket.gethostname()}_{os.getpid()}"
    parser.add_argument("--identity", default=identity, help="holder's name in the Lease")
    parser.add_argument(
        "--lost-node-grace",
        default=timedelta(minutes=5),
        type=_duration,
        help="how long a node may be deleted or not Ready and keep its slots (default: 5m)",
    )
    parser.add_argument(
        "--instance-classes",
        action="store_true",
        help="make a DeviceClass of each Instance, too, so that pods may ask for"
        " akri.sh/<instance> where devices are offered through DRA",
    )


def _common_arguments(parser: argparse.ArgumentParser, environ: Mapping[str, str]) -> None:
    _kubeconfig_argument(parser, environ)
    _log_argument(parser)
    parser.add_argument(
        "--metrics-address",
        default=parse_address(DEFAULT_METRICS_ADDRESS),
        type=_address,
        metavar="[HOST]:PORT",
        help="serve /metrics, /healthz and /readyz here; empty: nowhere"
        f" (default: {DEFAULT_METRICS_ADDRESS})",
    )
    parser.add_argument(
        "--path",
        default=str(OfferPath.AUTO),
        choices=[str(path) for path in OfferPath],
        help="how devices are offered: auto (default) takes dra where pods may ask for DRA devices"
        " as extended resources, else device-plugin; the same for nodes and the shared driver",
    )
    parser.add_argument(
        "--unique-devices-default",
        default="true",
        choices=("true", "false"),
        help="what spec.uniqueDevices means in a Configuration that does not set it",
    )


def _kubeconfig_argument(parser: argparse.ArgumentParser, environ: Mapping[str, str]) -> None:
    kubeconfig = environ.get("KUBECONFIG")
    parser.add_argument(
        "--kubeconfig",
        default=Path(kubeconfig) if kubeconfig else None,
        type=Path,
        help="default: $KUBECONFIG, else the pod's ServiceAccount",
    )


def _log_argument(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--log-level", default="INFO", choices=("DEBUG", "INFO", "WARNING", "ERROR")
    )


def _handler_names(text: str) -> frozenset[str]:
    names = frozenset(name for part in text.split(",") if (name := part.strip()))
    if unknown := sorted(names.difference(HANDLER_NAMES)):
        there_are = ", ".join(HANDLER_NAMES)
        raise argparse.ArgumentTypeError(f"no handler {', '.join(unknown)}; there are {there_are}")
    return names


def _address(text: str) -> Address | None:
    try:
        return parse_address(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from None


def _path_or_none(text: str) -> Path | None:
    return Path(text) if text else None


def _not_empty(text: str) -> str:
    if not text:
        raise argparse.ArgumentTypeError("must not be empty")
    return text


def _duration(text: str) -> timedelta:
    duration = parse_duration(text)
    if not duration:
        raise argparse.ArgumentTypeError(f"{text!r} is no duration such as 30s or 5m")
    return duration
