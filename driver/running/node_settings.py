"""Settings of `moorage-driver node`."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Annotated, Literal

import typer

from driver.api import NodeName
from driver.discovery.handlers import HANDLER_NAMES
from driver.environment_rules import NETWORK_PREFIXES, EnvironmentRules
from driver.handlers.report_limits import DEVICES, MOST_DEVICES, NODE_DEVICES, HandlerLimits
from driver.handlers.sdk_requests import (
    AGENT_FOLDER,
    AGENT_SOCKET,
    TlsFiles,
)
from driver.plumbing.disk_dev import HostDev, own_dev
from driver.running.arguments import (
    pem_file,
    positive,
    tls_files,
)
from driver.running.common_settings import DiscoverySettings, DriverSettings
from driver.running.flag_arguments import (
    AllowedNames,
    ContainerPaths,
    DeniedNames,
    DevicePaths,
    EmbeddedHandlers,
    HandlerMostDevices,
    HostDevFolder,
    MountPaths,
    NamesAllowed,
    NetworkFolder,
    NetworkPrefixes,
    NodeMostDevices,
    RegistrationSocket,
    StaleClaimGrace,
)
from kube.processes.api import TracingEndpoint, not_empty, parsed

_EMBEDDED = frozenset(HANDLER_NAMES)
_NETWORK_HANDLERS_GROUP = 65532
"""The group in the manifests."""


@dataclass(frozen=True, kw_only=True)
class NodeSettings(DriverSettings, DiscoverySettings):
    """Settings of `moorage-driver node`."""

    node_name: Annotated[
        NodeName,
        parsed(
            not_empty,
            metavar="NAME",
            envvar="NODE_NAME",
            help_="Name of the Node object of the node that this driver runs on.",
        ),
    ]
    pod_uid: Annotated[
        str,
        typer.Option(
            envvar="POD_UID",
            metavar="UID",
            help="UID of the driver's pod. It is part of the names of sockets, so that an old and a"
            " new pod can run at the same time during an update.",
        ),
    ] = ""
    tracing_endpoint: TracingEndpoint = ""
    kubelet_root: Annotated[
        Path,
        typer.Option(
            metavar="DIR", help="Folder of the kubelet, by the path that its --root-dir has."
        ),
    ] = Path("/var/lib/kubelet")
    cdi_root: Annotated[
        Path,
        typer.Option(
            metavar="DIR", help="Folder where the container runtime looks for dynamic CDI files."
        ),
    ] = Path("/var/run/cdi")
    instance_hash_digits: Annotated[
        Literal["6", "8", "12", "16"],
        typer.Option(
            help="Number of hexadecimal digits at the end of the names of new Instances. With 6"
            " digits, as Akri has, two of 5,000 devices of a Configuration may have the same name."
            " Set the same value on all nodes."
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
            help_="Id of the group that owns --network-handlers-folder.",
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
    handler_tls_ca: Annotated[
        str,
        pem_file(
            "PEM file with the CA certificates that verify handlers on the network (default: none;"
            " connections are not encrypted)."
        ),
    ] = ""
    handler_tls_cert: Annotated[
        str, pem_file("PEM file with the certificate of the driver for handlers (default: none).")
    ] = ""
    handler_tls_key: Annotated[
        str, pem_file("PEM file with the key of --handler-tls-cert (default: none).")
    ] = ""

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
