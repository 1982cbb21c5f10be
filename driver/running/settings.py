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
from typing import Annotated

import typer

from driver.configurations.permissions import Account
from driver.discovery.handlers import HANDLER_NAMES
from driver.handlers.sdk_requests import (
    AGENT_FOLDER,
    NETWORK_PORT,
    Place,
    place_from,
)
from driver.running.arguments import (
    handler_name,
    lasting,
    pem_file,
    tls_files,
)
from driver.running.common_settings import DiscoverySettings, DriverSettings, ProcessSettings
from driver.running.flag_arguments import (
    BrokerNamespaces,
    DriverNamespace,
    GroupByNodes,
)
from driver.running.node_settings import NodeSettings
from kube.processes.api import Kubeconfig, commands, settings_of

app = commands("moorage-driver", "Publish the devices of nodes and prepare claims.")


def parse_settings(argv: Sequence[str], environ: Mapping[str, str]) -> Settings:
    """Settings from the command line, the environment and a file.

    Raises:
        SystemExit: A flag is invalid; stderr has the reason.
    """
    settings: Settings = settings_of(app, argv, environ)
    return settings


@dataclass(frozen=True, kw_only=True)
class SharedSettings(DriverSettings):
    """Settings of `moorage-driver shared`."""

    namespace: Annotated[
        str, typer.Option(envvar="POD_NAMESPACE", help="Namespace of the Lease of the election.")
    ] = "moorage-system"
    identity: Annotated[
        str,
        typer.Option(
            help="Name of this process as holder of the Lease (default: name of the pod and id of"
            " the process)."
        ),
    ] = ""
    pod_name: Annotated[str, typer.Option(envvar="POD_NAME", hidden=True)] = ""
    lost_node_grace: Annotated[
        timedelta,
        lasting(
            "How long a node keeps its slots after it was deleted, or while it is not Ready and has"
            " no pods that use them.",
            "5m",
        ),
    ] = timedelta(minutes=5)
    instance_classes: Annotated[
        bool,
        typer.Option(
            "--instance-classes",
            help="Make a DeviceClass for each Instance, too, so that pods can request"
            " akri.sh/<instance> if devices are offered through DRA.",
        ),
    ] = False
    group_by_nodes: GroupByNodes = False
    broker_namespaces: BrokerNamespaces = frozenset()
    broker_account: Annotated[
        str,
        typer.Option(
            help="Name of the ServiceAccount, in each namespace, in whose name brokers, Jobs and"
            " Services are made."
        ),
    ] = "moorage-brokers"

    @property
    def holder(self) -> str:
        """The holder of the Lease, different for each process."""
        return self.identity or f"{self.pod_name or socket.gethostname()}_{os.getpid()}"


@dataclass(frozen=True, kw_only=True)
class HandlerProcessSettings(DiscoverySettings):
    """Settings of `moorage-driver handler`."""

    name: Annotated[
        str,
        typer.Argument(
            parser=handler_name,
            metavar="NAME",
            help=f"Discovery handler to run: {', '.join(HANDLER_NAMES)}.",
        ),
    ]
    folder: Annotated[
        Path,
        typer.Option(
            envvar="DISCOVERY_HANDLERS_DIRECTORY",
            metavar="DIR",
            help="Folder of the sockets of the agent and of this handler.",
        ),
    ] = AGENT_FOLDER
    address: Annotated[
        str,
        typer.Option(
            metavar="HOST:PORT",
            help="Address to listen on instead of a Unix socket (default: $POD_IP and port"
            f" {NETWORK_PORT} if POD_IP is set).",
        ),
    ] = ""
    pod_ip: Annotated[str, typer.Option(envvar="POD_IP", hidden=True)] = ""
    tls_ca: Annotated[
        str,
        pem_file(
            "PEM file with the CA certificates that verify drivers (default: none; connections are"
            " not encrypted).",
            envvar="HANDLER_TLS_CA",
        ),
    ] = ""
    tls_cert: Annotated[
        str,
        pem_file(
            "PEM file with a certificate that has the name of the handler as a DNS name (default:"
            " none).",
            envvar="HANDLER_TLS_CERT",
        ),
    ] = ""
    tls_key: Annotated[
        str,
        pem_file("PEM file with the key of --tls-cert (default: none).", envvar="HANDLER_TLS_KEY"),
    ] = ""

    def __post_init__(self) -> None:
        tls_files("--tls", self.tls_ca, self.tls_cert, self.tls_key)

    @property
    def place(self) -> Place:
        tls = tls_files("--tls", self.tls_ca, self.tls_cert, self.tls_key)
        return Place(self.folder, self.address or place_from({"POD_IP": self.pod_ip}).address, tls)


@dataclass(frozen=True, kw_only=True)
class PermissionsSettings(ProcessSettings):
    """Settings of `moorage-driver permissions`."""

    filename: Annotated[
        list[str] | None,
        typer.Option(
            "--filename",
            "-f",
            metavar="FILE",
            help="YAML file with Configurations, or - for stdin; may be repeated (default: all"
            " Configurations of the cluster).",
        ),
    ] = None
    namespace: DriverNamespace = "moorage-system"
    service_account: Annotated[
        str, typer.Option(metavar="NAME", help="ServiceAccount of the drivers on nodes.")
    ] = "driver-node"
    kubeconfig: Kubeconfig = None

    @property
    def account(self) -> Account:
        """The ServiceAccount that the Roles are bound to."""
        return Account(self.namespace, self.service_account)


@dataclass(frozen=True, kw_only=True)
class FromAkriSettings(ProcessSettings):
    """Settings of `moorage-driver from-akri`."""

    kubeconfig: Kubeconfig = None


Settings = (
    NodeSettings | SharedSettings | HandlerProcessSettings | PermissionsSettings | FromAkriSettings
)

app.command("node", help="Run the driver of one node. Run it on each node.")(NodeSettings)
app.command("shared", help="Run the driver of the cluster. Several replicas elect a leader.")(
    SharedSettings
)
app.command("handler", help="Run one discovery handler in a process of its own.")(
    HandlerProcessSettings
)
app.command(
    "permissions",
    help="Print Roles that let drivers read the Secrets and ConfigMaps that Configurations name.",
)(PermissionsSettings)
app.command(
    "from-akri",
    help="Report what changes if Moorage replaces the Akri of a cluster. Changes nothing.",
)(FromAkriSettings)
