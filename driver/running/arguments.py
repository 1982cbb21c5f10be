"""The command line of `moorage-driver`. Nothing else reads flags or environment variables."""

from __future__ import annotations

import os
import socket
from collections.abc import Mapping, Sequence
from datetime import timedelta
from pathlib import Path
from typing import Annotated

import typer

from driver.api import NodeName
from driver.configurations.permissions import Account
from driver.discovery.handlers import DEBUG_ECHO_FILE, HANDLER_NAMES, HandlerSettings
from driver.discovery.reach import Network, Reach, services_around
from driver.handlers.limits import DEVICES, MOST_DEVICES, NETWORK_HANDLERS, HandlerLimits
from driver.handlers.sdk_requests import (
    AGENT_FOLDER,
    AGENT_SOCKET,
    NETWORK_PORT,
    TlsFiles,
    place_from,
)
from driver.offer_paths import OfferPath
from driver.running.metrics_address import DEFAULT as DEFAULT_METRICS_ADDRESS
from driver.running.settings import (
    HandlerProcessSettings,
    NodeSettings,
    PermissionsSettings,
    Settings,
    SharedSettings,
)
from driver.running.typed_arguments import (
    DebugEchoFile,
    DebugEchoShared,
    DiscoveryNetworks,
    HostPaths,
    MetricsAddress,
    OfferedBy,
    RediscoveryInterval,
    RescanInterval,
    ServiceHost,
    ServiceNetworks,
    UniqueDevicesDefault,
    duration,
    handler_name,
    handler_names,
    host_paths,
    path_or_none,
    pem_file,
    positive,
)
from kube.api import Config, Kubeconfig, LogLevel, commands, not_empty, parsed, refuse, settings_of

NETWORK_HANDLERS_GROUP = 65532
"""As in the manifests."""

app = commands("moorage-driver", "Publish the devices of nodes and prepare claims.")


def parse_settings(argv: Sequence[str], environ: Mapping[str, str]) -> Settings:
    """Settings from the command line, the environment and a file.

    Raises:
        SystemExit: With a sentence, on flags that make no sense.
    """
    settings: Settings = settings_of(app, argv, environ)
    return settings


@app.command(help="Serve one node: run it on each.")
def node(
    node_name: Annotated[
        str,
        parsed(not_empty, metavar="NAME", envvar="NODE_NAME", help_="Of this node's Node object."),
    ],
    pod_uid: Annotated[str, typer.Option(envvar="POD_UID", metavar="UID")] = "",
    kubelet_root: Annotated[Path, typer.Option(metavar="DIR")] = Path("/var/lib/kubelet"),
    cdi_root: Annotated[Path, typer.Option(metavar="DIR")] = Path("/var/run/cdi"),
    embedded_handlers: Annotated[
        frozenset[str],
        parsed(
            handler_names,
            metavar="NAMES",
            help_="Discovery handlers that run in this process, with commas between them; the"
            " others are waited for.",
            shown=",".join(HANDLER_NAMES),
        ),
    ] = frozenset(HANDLER_NAMES),
    handler_registration_socket: Annotated[
        Path | None,
        parsed(
            path_or_none,
            metavar="FILE",
            help_="Where discovery handlers of other processes register; empty: nowhere.",
            shown=str(AGENT_FOLDER / AGENT_SOCKET),
        ),
    ] = AGENT_FOLDER / AGENT_SOCKET,
    network_handlers_folder: Annotated[
        Path | None,
        parsed(
            path_or_none,
            metavar="DIR",
            help_=f"Where {' and '.join(NETWORK_HANDLERS)} may register that run without"
            " privileges, and listen (default: none).",
        ),
    ] = None,
    network_handlers_group: Annotated[
        int,
        parsed(
            positive,
            metavar="GID",
            help_="Whose the folder is.",
            shown=str(NETWORK_HANDLERS_GROUP),
        ),
    ] = NETWORK_HANDLERS_GROUP,
    external_handlers: Annotated[
        frozenset[str] | None,
        parsed(
            handler_names,
            metavar="NAMES",
            help_="Names of Moorage's own that handlers of other processes may register all the"
            " same, with commas between them (default: those that are not in --embedded-handlers).",
        ),
    ] = None,
    handler_device_paths: Annotated[
        HostPaths,
        parsed(
            host_paths,
            metavar="PATHS",
            help_="Of the host, with commas between them: what registered handlers give containers"
            " as device nodes lies there or below; a part may be a pattern.",
            shown=DEVICES,
        ),
    ] = (DEVICES,),
    handler_mount_paths: Annotated[
        HostPaths,
        parsed(
            host_paths,
            metavar="PATHS",
            help_="The same for files and folders that they mount (default: none).",
        ),
    ] = (),
    handler_most_devices: Annotated[
        int,
        parsed(
            positive,
            metavar="NUMBER",
            help_="That one registered handler may report in all.",
            shown=str(MOST_DEVICES),
        ),
    ] = MOST_DEVICES,
    handler_tls_ca: Annotated[str, pem_file("certificates that vouch for handlers.")] = "",
    handler_tls_cert: Annotated[str, pem_file("the driver's certificate.")] = "",
    handler_tls_key: Annotated[str, pem_file("the key of the certificate.")] = "",
    kubeconfig: Kubeconfig = None,
    log_level: LogLevel = "INFO",
    config: Config = "",
    metrics_address: MetricsAddress = DEFAULT_METRICS_ADDRESS,
    path: OfferedBy = OfferPath.AUTO,
    unique_devices_default: UniqueDevicesDefault = "true",
    rescan_interval: RescanInterval = timedelta(seconds=60),
    rediscovery_interval: RediscoveryInterval = timedelta(seconds=10),
    discovery_networks: DiscoveryNetworks = (),
    service_networks: ServiceNetworks = None,
    kubernetes_service_host: ServiceHost = "",
    debug_echo_file: DebugEchoFile = DEBUG_ECHO_FILE,
    debug_echo_shared: DebugEchoShared = "true",
) -> NodeSettings:
    if external_handlers is None:
        external_handlers = frozenset(HANDLER_NAMES) - embedded_handlers
    return NodeSettings(
        node=NodeName(node_name),
        pod_uid=pod_uid,
        kubelet_root=kubelet_root,
        cdi_root=cdi_root,
        discovery=HandlerSettings(
            rescan_interval=rescan_interval,
            rediscovery_interval=rediscovery_interval,
            reach=_reach(discovery_networks, service_networks, kubernetes_service_host),
            debug_echo_file=debug_echo_file,
            debug_echo_shared=debug_echo_shared == "true",
        ),
        embedded_handlers=embedded_handlers,
        network_handlers_folder=network_handlers_folder,
        network_handlers_group=network_handlers_group,
        handler_limits=HandlerLimits(
            device_paths=tuple(handler_device_paths),
            mount_paths=tuple(handler_mount_paths),
            reserved=frozenset(HANDLER_NAMES) - external_handlers,
            most_devices=handler_most_devices,
        ),
        handler_tls=_tls("--handler-tls", handler_tls_ca, handler_tls_cert, handler_tls_key),
        registration_socket=handler_registration_socket,
        kubeconfig=kubeconfig,
        log_level=log_level,
        metrics_address=metrics_address,
        path=path,
        unique_devices_default=unique_devices_default == "true",
    )


@app.command(help="Serve the cluster: run one, or several elected.")
def shared(
    namespace: Annotated[
        str, typer.Option(envvar="POD_NAMESPACE", help="Of the Lease.")
    ] = "moorage-system",
    identity: Annotated[
        str, typer.Option(help="Holder's name in the Lease (default: of the pod and the process).")
    ] = "",
    pod_name: Annotated[str, typer.Option(envvar="POD_NAME", hidden=True)] = "",
    lost_node_grace: Annotated[
        timedelta,
        parsed(
            duration,
            metavar="DURATION",
            help_="How long a node may be deleted, or be not Ready without pods, and keep its"
            " slots.",
            shown="5m",
        ),
    ] = timedelta(minutes=5),
    instance_classes: Annotated[
        bool,
        typer.Option(
            "--instance-classes",
            help="Make a DeviceClass of each Instance, too, so that pods may ask for"
            " akri.sh/<instance> where devices are offered through DRA.",
        ),
    ] = False,
    kubeconfig: Kubeconfig = None,
    log_level: LogLevel = "INFO",
    config: Config = "",
    metrics_address: MetricsAddress = DEFAULT_METRICS_ADDRESS,
    path: OfferedBy = OfferPath.AUTO,
    unique_devices_default: UniqueDevicesDefault = "true",
) -> SharedSettings:
    return SharedSettings(
        namespace=namespace,
        identity=identity or f"{pod_name or socket.gethostname()}_{os.getpid()}",
        lost_node_grace=lost_node_grace,
        instance_classes=instance_classes,
        kubeconfig=kubeconfig,
        log_level=log_level,
        metrics_address=metrics_address,
        path=path,
        unique_devices_default=unique_devices_default == "true",
    )


@app.command(help="One discovery handler in a process of its own.")
def handler(
    name: Annotated[
        str, typer.Argument(parser=handler_name, metavar="NAME", help="|".join(HANDLER_NAMES))
    ],
    folder: Annotated[
        Path,
        typer.Option(
            envvar="DISCOVERY_HANDLERS_DIRECTORY",
            metavar="DIR",
            help="Of the agent's socket and the handler's own.",
        ),
    ] = AGENT_FOLDER,
    address: Annotated[
        str,
        typer.Option(
            metavar="HOST:PORT",
            help="Listen on the network, and not at a socket"
            f" (default: $POD_IP and port {NETWORK_PORT}, if that is set).",
        ),
    ] = "",
    pod_ip: Annotated[str, typer.Option(envvar="POD_IP", hidden=True)] = "",
    tls_ca: Annotated[
        str, pem_file("certificates that vouch for drivers.", envvar="HANDLER_TLS_CA")
    ] = "",
    tls_cert: Annotated[
        str,
        pem_file("a certificate with the handler's name as a DNS name.", envvar="HANDLER_TLS_CERT"),
    ] = "",
    tls_key: Annotated[str, pem_file("the key of the certificate.", envvar="HANDLER_TLS_KEY")] = "",
    log_level: LogLevel = "INFO",
    config: Config = "",
    rescan_interval: RescanInterval = timedelta(seconds=60),
    rediscovery_interval: RediscoveryInterval = timedelta(seconds=10),
    discovery_networks: DiscoveryNetworks = (),
    service_networks: ServiceNetworks = None,
    kubernetes_service_host: ServiceHost = "",
    debug_echo_file: DebugEchoFile = DEBUG_ECHO_FILE,
    debug_echo_shared: DebugEchoShared = "true",
) -> HandlerProcessSettings:
    return HandlerProcessSettings(
        name=name,
        log_level=log_level,
        folder=folder,
        address=address or place_from({"POD_IP": pod_ip}).address,
        tls=_tls("--tls", tls_ca, tls_cert, tls_key),
        discovery=HandlerSettings(
            rescan_interval=rescan_interval,
            rediscovery_interval=rediscovery_interval,
            reach=_reach(discovery_networks, service_networks, kubernetes_service_host),
            debug_echo_file=debug_echo_file,
            debug_echo_shared=debug_echo_shared == "true",
        ),
    )


@app.command(help="Print the Roles by which drivers may read what Configurations name.")
def permissions(
    filename: Annotated[
        list[str] | None,
        typer.Option(
            "--filename",
            "-f",
            metavar="FILE",
            help="With Configurations, or - (default: all Configurations of the cluster).",
        ),
    ] = None,
    namespace: Annotated[
        str, typer.Option(envvar="POD_NAMESPACE", help="Of the drivers.")
    ] = "moorage-system",
    service_account: Annotated[
        str, typer.Option(metavar="NAME", help="Of the drivers on nodes.")
    ] = "driver-node",
    kubeconfig: Kubeconfig = None,
    log_level: LogLevel = "INFO",
    config: Config = "",
) -> PermissionsSettings:
    return PermissionsSettings(
        files=tuple(filename or ()),
        kubeconfig=kubeconfig,
        log_level=log_level,
        account=Account(namespace, service_account),
    )


def _reach(
    networks: Sequence[Network], services: Sequence[Network] | None, service_host: str
) -> Reach:
    around = services_around(service_host) if services is None else services
    return Reach(tuple(networks), tuple(around))


def _tls(flag: str, *files: str) -> TlsFiles | None:
    if any(files) and not all(files):
        raise refuse(f"{flag}-ca, {flag}-cert and {flag}-key: all of them, or none")
    return TlsFiles(*map(Path, files)) if all(files) else None
