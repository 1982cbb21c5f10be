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
from driver.discovery.handlers import DEBUG_ECHO_FILE
from driver.durations import parse_duration
from driver.offer_paths import OfferPath


@dataclass(frozen=True, slots=True, kw_only=True)
class CommonSettings:
    """What both commands need.

    Attributes:
        kubeconfig: None for the ServiceAccount of the pod.
        unique_devices_default: What `spec.uniqueDevices` means where it is absent.
    """

    kubeconfig: Path | None
    log_level: str
    unique_devices_default: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeSettings(CommonSettings):
    """Settings of `moorage-driver node`.

    Attributes:
        pod_uid: Makes the sockets' names unique, so that an old and a new pod of the DaemonSet
            may overlap; empty outside a pod.
        kubelet_root: The kubelet's `--root-dir`, as this process sees it.
        cdi_root: Where the container runtime looks for dynamic CDI files.
        path: By which of the kubelet's contracts devices are offered.
        rescan_interval: The safety net under the events of the kernel.
        debug_echo_file: While it says OFFLINE, the debugEcho handler finds nothing.
    """

    node: NodeName
    pod_uid: str
    kubelet_root: Path
    cdi_root: Path
    path: OfferPath
    rescan_interval: timedelta
    debug_echo_file: Path


@dataclass(frozen=True, slots=True, kw_only=True)
class SharedSettings(CommonSettings):
    """Settings of `moorage-driver shared`.

    Attributes:
        namespace: Where its Lease is.
        identity: The holder's name in the Lease; unique per process.
        lost_node_grace: How long a node may be away and keep its slots.
    """

    namespace: str
    identity: str
    lost_node_grace: timedelta


def parse_settings(
    argv: Sequence[str], environ: Mapping[str, str]
) -> NodeSettings | SharedSettings:
    """Settings from the command line; flags win over the environment.

    Raises:
        SystemExit: With argparse's message, on flags that make no sense.
    """
    arguments = _parser(environ).parse_args(argv)
    common = {
        "kubeconfig": arguments.kubeconfig,
        "log_level": arguments.log_level,
        "unique_devices_default": arguments.unique_devices_default == "true",
    }
    if arguments.command == "shared":
        return SharedSettings(
            namespace=arguments.namespace,
            identity=arguments.identity,
            lost_node_grace=arguments.lost_node_grace,
            **common,
        )
    return NodeSettings(
        node=NodeName(arguments.node_name),
        pod_uid=arguments.pod_uid,
        kubelet_root=arguments.kubelet_root,
        cdi_root=arguments.cdi_root,
        path=OfferPath(arguments.path),
        rescan_interval=arguments.rescan_interval,
        debug_echo_file=arguments.debug_echo_file,
        **common,
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
        "--path",
        default=str(OfferPath.AUTO),
        choices=[str(path) for path in OfferPath],
        help="how devices are offered: auto (default) takes dra where pods may ask for DRA devices"
        " as extended resources, else device-plugin",
    )
    parser.add_argument(
        "--rescan-interval",
        default=timedelta(seconds=60),
        type=_duration,
        help="how often all devices are read anew, beside the kernel's events (default: 60s)",
    )
    parser.add_argument(
        "--debug-echo-file",
        default=DEBUG_ECHO_FILE,
        type=Path,
        metavar="FILE",
        help=f"while it says OFFLINE, debugEcho finds nothing (default: {DEBUG_ECHO_FILE})",
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


def _common_arguments(parser: argparse.ArgumentParser, environ: Mapping[str, str]) -> None:
    kubeconfig = environ.get("KUBECONFIG")
    parser.add_argument(
        "--kubeconfig",
        default=Path(kubeconfig) if kubeconfig else None,
        type=Path,
        help="default: $KUBECONFIG, else the pod's ServiceAccount",
    )
    parser.add_argument(
        "--log-level", default="INFO", choices=("DEBUG", "INFO", "WARNING", "ERROR")
    )
    parser.add_argument(
        "--unique-devices-default",
        default="true",
        choices=("true", "false"),
        help="what spec.uniqueDevices means in a Configuration that does not set it",
    )


def _not_empty(text: str) -> str:
    if not text:
        raise argparse.ArgumentTypeError("must not be empty")
    return text


def _duration(text: str) -> timedelta:
    duration = parse_duration(text)
    if not duration:
        raise argparse.ArgumentTypeError(f"{text!r} is no duration such as 30s or 5m")
    return duration
