"""The command line of `moorage-driver`, with what the environment says as its defaults."""

from __future__ import annotations

import argparse
import os
import socket
from collections.abc import Mapping
from datetime import timedelta
from pathlib import Path

from driver.discovery.handlers import DEBUG_ECHO_FILE, HANDLER_NAMES
from driver.discovery.reach import Network, parse_networks, services_around
from driver.durations import parse_duration
from driver.handlers.limits import DEVICES, MOST_DEVICES, NETWORK_HANDLERS
from driver.handlers.sdk_requests import (
    AGENT_FOLDER,
    AGENT_SOCKET,
    NETWORK_PORT,
    TLS_VARIABLES,
    place_from,
)
from driver.offer_paths import OfferPath
from driver.running.metrics_address import DEFAULT as DEFAULT_METRICS_ADDRESS
from driver.running.metrics_address import Address, parse_address
from driver.running.permissions_settings import permissions_arguments

NETWORK_HANDLERS_GROUP = 65532
"""As in the manifests."""


def parser_of(environ: Mapping[str, str]) -> argparse.ArgumentParser:
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
    parser.add_argument(
        "--network-handlers-folder",
        type=_path_or_none,
        metavar="DIR",
        help=f"where {' and '.join(NETWORK_HANDLERS)} may register that run without privileges, and"
        " listen (default: none)",
    )
    parser.add_argument(
        "--network-handlers-group",
        default=NETWORK_HANDLERS_GROUP,
        type=_positive,
        metavar="GID",
        help=f"whose the folder is (default: {NETWORK_HANDLERS_GROUP})",
    )
    _limit_arguments(parser)
    _tls_arguments(parser, "--handler-tls", ("", "", ""))
    _discovery_arguments(parser, environ)


def _limit_arguments(parser: argparse.ArgumentParser) -> None:
    """What discovery handlers of other processes may be, give and have."""
    parser.add_argument(
        "--external-handlers",
        type=_handler_names,
        metavar="NAMES",
        help="names of Moorage's own that handlers of other processes may register all the same,"
        " with commas between them (default: those that are not in --embedded-handlers)",
    )
    parser.add_argument(
        "--handler-device-paths",
        default=(DEVICES,),
        type=_host_paths,
        metavar="PATHS",
        help="of the host, with commas between them: what registered handlers give containers as"
        f" device nodes lies there or below; a part may be a pattern (default: {DEVICES})",
    )
    parser.add_argument(
        "--handler-mount-paths",
        default=(),
        type=_host_paths,
        metavar="PATHS",
        help="the same for files and folders that they mount (default: none)",
    )
    parser.add_argument(
        "--handler-most-devices",
        default=MOST_DEVICES,
        type=_positive,
        metavar="NUMBER",
        help=f"that one registered handler may report in all (default: {MOST_DEVICES})",
    )


def _tls_arguments(parser: argparse.ArgumentParser, prefix: str, defaults: tuple[str, ...]) -> None:
    """Files by which handlers on the network and drivers know each other."""
    told = (
        ("ca", "certificates that vouch for the other side"),
        ("cert", "this side's certificate; a handler's bears the handler's name as a DNS name"),
        ("key", "the key of the certificate"),
    )
    for (part, help_), default in zip(told, defaults, strict=True):
        shown = (
            f" (default: ${TLS_VARIABLES[('ca', 'cert', 'key').index(part)]})" if default else ""
        )
        parser.add_argument(
            f"{prefix}-{part}", default=default, metavar="FILE", help=f"PEM: {help_}{shown}"
        )


def _handler_arguments(parser: argparse.ArgumentParser, environ: Mapping[str, str]) -> None:
    place = place_from({**environ, **dict.fromkeys(TLS_VARIABLES, "")})
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
    defaults = tuple(environ.get(name, "") for name in TLS_VARIABLES)
    _tls_arguments(parser, "--tls", defaults)
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
        "--discovery-networks",
        default=(),
        type=_networks,
        metavar="NETWORKS",
        help="such as 10.20.0.0/16, with commas between them: addresses of cameras and OPC UA"
        " servers that are asked whoever tells of them (default: none, each tells of itself)",
    )
    services = services_around(environ.get("KUBERNETES_SERVICE_HOST", ""))
    parser.add_argument(
        "--service-networks",
        default=services,
        type=_networks,
        metavar="NETWORKS",
        help="of the cluster's services, where no camera is (default: around"
        f" $KUBERNETES_SERVICE_HOST{', ' if services else ''}{','.join(map(str, services))})",
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
        help="how long a node may be deleted, or be not Ready without pods, and keep its slots"
        " (default: 5m)",
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


def _host_paths(text: str) -> tuple[str, ...]:
    paths = tuple(path for part in text.split(",") if (path := part.strip()))
    if odd := [path for path in paths if not path.startswith("/") or ".." in path.split("/")]:
        raise argparse.ArgumentTypeError(f"{odd[0]!r} is no absolute path")
    return paths


def _positive(text: str) -> int:
    if not text.isdecimal() or not int(text):
        raise argparse.ArgumentTypeError(f"{text!r} is no number above 0")
    return int(text)


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


def _networks(text: str) -> tuple[Network, ...]:
    try:
        return parse_networks(text)
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
