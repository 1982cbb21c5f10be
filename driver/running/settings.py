"""Settings of `moorage-driver`: a class for each command, and in it a flag for each field.

Nothing else reads flags or environment variables.
"""

from __future__ import annotations

import os
import socket
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Annotated, Literal

import typer

from driver.api import NodeName
from driver.configurations.permissions import Account
from driver.discovery.handlers import DEBUG_ECHO_FILE, HANDLER_NAMES, HandlerSettings
from driver.discovery.reach import Network, Reach, parse_networks, services_around
from driver.environment import NETWORK_PREFIXES, EnvironmentRules
from driver.handlers.limits import DEVICES, MOST_DEVICES, NODE_DEVICES, HandlerLimits
from driver.handlers.sdk_requests import (
    AGENT_FOLDER,
    AGENT_SOCKET,
    NETWORK_PORT,
    Place,
    TlsFiles,
    place_from,
)
from driver.offer_paths import OfferPath
from driver.plumbing.disk_dev import HostDev, own_dev
from driver.running.arguments import (
    DEFAULT_METRICS_ADDRESS,
    Address,
    AllowedNames,
    ContainerPaths,
    DeniedNames,
    DevicePaths,
    DriverNamespace,
    EmbeddedHandlers,
    GroupByNodes,
    HandlerMostDevices,
    HostDevFolder,
    MountPaths,
    NamesAllowed,
    NetworkFolder,
    NetworkPrefixes,
    NodeMostDevices,
    RegistrationSocket,
    StaleClaimGrace,
    YesOrNo,
    handler_name,
    lasting,
    parse_address,
    pem_file,
    positive,
    tls_files,
)
from kube.api import (
    Config,
    Kubeconfig,
    LogFormat,
    LogLevel,
    TracingEndpoint,
    commands,
    not_empty,
    parsed,
    settings_of,
)

_EMBEDDED = frozenset(HANDLER_NAMES)
_NETWORK_HANDLERS_GROUP = 65532
"""As in the manifests."""

app = commands("moorage-driver", "Publish the devices of nodes and prepare claims.")


def parse_settings(argv: Sequence[str], environ: Mapping[str, str]) -> Settings:
    """Settings from the command line, the environment and a file.

    Raises:
        SystemExit: With a sentence, on flags that make no sense.
    """
    settings: Settings = settings_of(app, argv, environ)
    return settings


@dataclass(frozen=True, kw_only=True)
class _ProcessSettings:
    """What every command has."""

    log_level: LogLevel = "INFO"
    log_format: LogFormat = "text"
    config: Config = ""


@dataclass(frozen=True, kw_only=True)
class _DriverSettings(_ProcessSettings):
    """What both drivers have."""

    kubeconfig: Kubeconfig = None
    metrics_address: Annotated[
        Address | None,
        parsed(
            parse_address,
            metavar="[HOST]:PORT",
            help_="Serve /metrics, /healthz and /readyz here; empty: nowhere.",
            shown=str(DEFAULT_METRICS_ADDRESS),
        ),
    ] = DEFAULT_METRICS_ADDRESS
    path: Annotated[
        OfferPath,
        typer.Option(
            help="How devices are offered: auto takes dra where pods may ask for DRA devices as"
            " extended resources, else device-plugin; the same for nodes and the shared driver.",
        ),
    ] = OfferPath.AUTO
    unique_devices_default: Annotated[
        YesOrNo,
        typer.Option(help="What spec.uniqueDevices means in a Configuration that does not set it."),
    ] = "true"


@dataclass(frozen=True, kw_only=True)
class _DiscoverySettings(_ProcessSettings):
    """What discovery handlers are told, in whichever process."""

    rescan_interval: Annotated[
        timedelta,
        lasting("How often all devices are read anew, beside the kernel's events.", "60s"),
    ] = timedelta(seconds=60)
    rediscovery_interval: Annotated[
        timedelta, lasting("How often networks are asked for cameras and OPC UA servers.", "10s")
    ] = timedelta(seconds=10)
    discovery_networks: Annotated[
        Sequence[Network],
        parsed(
            parse_networks,
            metavar="NETWORKS",
            help_="Such as 10.20.0.0/16, with commas between them: addresses of cameras and OPC UA"
            " servers that are asked whoever tells of them (default: none, each tells of itself).",
        ),
    ] = ()
    service_networks: Annotated[
        Sequence[Network] | None,
        parsed(
            parse_networks,
            metavar="NETWORKS",
            help_="Of the cluster's services, where no camera is (default: around"
            " $KUBERNETES_SERVICE_HOST).",
        ),
    ] = None
    kubernetes_service_host: Annotated[
        str, typer.Option(envvar="KUBERNETES_SERVICE_HOST", hidden=True)
    ] = ""
    debug_echo_file: Annotated[
        Path, typer.Option(metavar="FILE", help="While it says OFFLINE, debugEcho finds nothing.")
    ] = DEBUG_ECHO_FILE
    debug_echo_shared: Annotated[
        YesOrNo,
        typer.Option(
            envvar="DEBUG_ECHO_INSTANCES_SHARED",
            help="Whether nodes share debugEcho's devices, where the details do not say.",
        ),
    ] = "true"

    @property
    def discovery(self) -> HandlerSettings:
        services = self.service_networks
        around = services_around(self.kubernetes_service_host) if services is None else services
        return HandlerSettings(
            rescan_interval=self.rescan_interval,
            rediscovery_interval=self.rediscovery_interval,
            reach=Reach(tuple(self.discovery_networks), tuple(around)),
            debug_echo_file=self.debug_echo_file,
            debug_echo_shared=self.debug_echo_shared == "true",
        )


@dataclass(frozen=True, kw_only=True)
class NodeSettings(_DriverSettings, _DiscoverySettings):
    """Settings of `moorage-driver node`."""

    node_name: Annotated[
        NodeName,
        parsed(not_empty, metavar="NAME", envvar="NODE_NAME", help_="Of this node's Node object."),
    ]
    pod_uid: Annotated[
        str,
        typer.Option(
            envvar="POD_UID",
            metavar="UID",
            help="Keeps the sockets of an old and a new pod apart while they overlap.",
        ),
    ] = ""
    tracing_endpoint: TracingEndpoint = ""
    kubelet_root: Annotated[
        Path, typer.Option(metavar="DIR", help="The kubelet's --root-dir, as it itself has it.")
    ] = Path("/var/lib/kubelet")
    cdi_root: Annotated[
        Path, typer.Option(metavar="DIR", help="Where the runtime looks for dynamic CDI files.")
    ] = Path("/var/run/cdi")
    instance_hash_digits: Annotated[
        Literal["6", "8", "12", "16"],
        typer.Option(
            help="Hexadecimal digits that end the names of new Instances. Akri's are 6, so that of"
            " 5,000 devices of a Configuration two may have one name; the same for all nodes."
        ),
    ] = "6"
    stale_claim_grace: StaleClaimGrace = timedelta(hours=1)
    embedded_handlers: EmbeddedHandlers = _EMBEDDED
    handler_registration_socket: RegistrationSocket = AGENT_FOLDER / AGENT_SOCKET
    network_handlers_folder: NetworkFolder = None
    network_handlers_group: Annotated[
        int,
        parsed(
            positive,
            metavar="GID",
            help_="Whose the folder is.",
            shown=str(_NETWORK_HANDLERS_GROUP),
        ),
    ] = _NETWORK_HANDLERS_GROUP
    external_handlers: NamesAllowed = None
    handler_device_paths: DevicePaths = (DEVICES,)
    handler_mount_paths: MountPaths = ()
    handler_container_paths: ContainerPaths = ()
    host_dev: HostDevFolder = None
    handler_most_devices: HandlerMostDevices = MOST_DEVICES
    node_most_devices: NodeMostDevices = NODE_DEVICES
    network_handler_prefixes: NetworkPrefixes = NETWORK_PREFIXES
    denied_environment: DeniedNames = ()
    allowed_environment: AllowedNames = ()
    handler_tls_ca: Annotated[str, pem_file("certificates that vouch for handlers.")] = ""
    handler_tls_cert: Annotated[str, pem_file("the driver's certificate.")] = ""
    handler_tls_key: Annotated[str, pem_file("the key of the certificate.")] = ""

    def __post_init__(self) -> None:
        tls_files("--handler-tls", *self._tls_files)

    @property
    def handler_limits(self) -> HandlerLimits:
        external = self.external_handlers
        free = _EMBEDDED - self.embedded_handlers if external is None else external
        return HandlerLimits(
            device_paths=tuple(self.handler_device_paths),
            mount_paths=tuple(self.handler_mount_paths),
            container_paths=tuple(self.handler_container_paths),
            reserved=_EMBEDDED - free,
            most_devices=self.handler_most_devices,
            network_folder=str(self.network_handlers_folder or ""),
            node_devices=self.node_most_devices,
        )

    @property
    def dev(self) -> HostDev:
        return HostDev(self.host_dev or own_dev())

    @property
    def environment_rules(self) -> EnvironmentRules:
        return EnvironmentRules(
            denied=tuple(self.denied_environment),
            allowed=frozenset(self.allowed_environment),
            network_prefixes=tuple(self.network_handler_prefixes),
        )

    @property
    def handler_tls(self) -> TlsFiles | None:
        return tls_files("--handler-tls", *self._tls_files)

    @property
    def _tls_files(self) -> tuple[str, ...]:
        return self.handler_tls_ca, self.handler_tls_cert, self.handler_tls_key


@dataclass(frozen=True, kw_only=True)
class SharedSettings(_DriverSettings):
    """Settings of `moorage-driver shared`."""

    namespace: Annotated[str, typer.Option(envvar="POD_NAMESPACE", help="Of the Lease.")] = (
        "moorage-system"
    )
    identity: Annotated[
        str, typer.Option(help="Holder's name in the Lease (default: of the pod and the process).")
    ] = ""
    pod_name: Annotated[str, typer.Option(envvar="POD_NAME", hidden=True)] = ""
    lost_node_grace: Annotated[
        timedelta,
        lasting(
            "How long a node may be deleted, or be not Ready without pods, and keep its slots.",
            "5m",
        ),
    ] = timedelta(minutes=5)
    instance_classes: Annotated[
        bool,
        typer.Option(
            "--instance-classes",
            help="Make a DeviceClass of each Instance, too, so that pods may ask for"
            " akri.sh/<instance> where devices are offered through DRA.",
        ),
    ] = False
    group_by_nodes: GroupByNodes = False

    @property
    def holder(self) -> str:
        """Of the Lease; unique per process."""
        return self.identity or f"{self.pod_name or socket.gethostname()}_{os.getpid()}"


@dataclass(frozen=True, kw_only=True)
class HandlerProcessSettings(_DiscoverySettings):
    """Settings of `moorage-driver handler`."""

    name: Annotated[
        str, typer.Argument(parser=handler_name, metavar="NAME", help="|".join(HANDLER_NAMES))
    ]
    folder: Annotated[
        Path,
        typer.Option(
            envvar="DISCOVERY_HANDLERS_DIRECTORY",
            metavar="DIR",
            help="Of the agent's socket and the handler's own.",
        ),
    ] = AGENT_FOLDER
    address: Annotated[
        str,
        typer.Option(
            metavar="HOST:PORT",
            help="Listen on the network, and not at a socket"
            f" (default: $POD_IP and port {NETWORK_PORT}, if that is set).",
        ),
    ] = ""
    pod_ip: Annotated[str, typer.Option(envvar="POD_IP", hidden=True)] = ""
    tls_ca: Annotated[
        str, pem_file("certificates that vouch for drivers.", envvar="HANDLER_TLS_CA")
    ] = ""
    tls_cert: Annotated[
        str,
        pem_file("a certificate with the handler's name as a DNS name.", envvar="HANDLER_TLS_CERT"),
    ] = ""
    tls_key: Annotated[str, pem_file("the key of the certificate.", envvar="HANDLER_TLS_KEY")] = ""

    def __post_init__(self) -> None:
        tls_files("--tls", self.tls_ca, self.tls_cert, self.tls_key)

    @property
    def place(self) -> Place:
        tls = tls_files("--tls", self.tls_ca, self.tls_cert, self.tls_key)
        return Place(self.folder, self.address or place_from({"POD_IP": self.pod_ip}).address, tls)


@dataclass(frozen=True, kw_only=True)
class PermissionsSettings(_ProcessSettings):
    """Settings of `moorage-driver permissions`."""

    filename: Annotated[
        list[str] | None,
        typer.Option(
            "--filename",
            "-f",
            metavar="FILE",
            help="With Configurations, or - (default: all Configurations of the cluster).",
        ),
    ] = None
    namespace: DriverNamespace = "moorage-system"
    service_account: Annotated[
        str, typer.Option(metavar="NAME", help="Of the drivers on nodes.")
    ] = "driver-node"
    kubeconfig: Kubeconfig = None

    @property
    def account(self) -> Account:
        """Who is to be allowed to read."""
        return Account(self.namespace, self.service_account)


@dataclass(frozen=True, kw_only=True)
class FromAkriSettings(_ProcessSettings):
    """Settings of `moorage-driver from-akri`."""

    kubeconfig: Kubeconfig = None


Settings = (
    NodeSettings | SharedSettings | HandlerProcessSettings | PermissionsSettings | FromAkriSettings
)

app.command("node", help="Serve one node: run it on each.")(NodeSettings)
app.command("shared", help="Serve the cluster: run one, or several elected.")(SharedSettings)
app.command("handler", help="One discovery handler in a process of its own.")(
    HandlerProcessSettings
)
app.command(
    "permissions",
    help="Print the Roles by which drivers may read what Configurations name.",
)(PermissionsSettings)
app.command(
    "from-akri", help="Say what becomes of an Akri that runs in a cluster. Changes nothing."
)(FromAkriSettings)
