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
from driver.running.flags import (
    DriverNamespace,
    GroupByNodes,
)
from driver.running.node_settings import NodeSettings
from kube.api import (
    Kubeconfig,
    commands,
    settings_of,
)

app = commands("moorage-driver", "Publish the devices of nodes and prepare claims.")


def parse_settings(argv: Sequence[str], environ: Mapping[str, str]) -> Settings:
    """Settings from the command line, the environment and a file.

    Raises:
        SystemExit: With a sentence, on flags that make no sense.
    """
    settings: Settings = settings_of(app, argv, environ)
    return settings


@dataclass(frozen=True, kw_only=True)
class SharedSettings(DriverSettings):
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
class HandlerProcessSettings(DiscoverySettings):
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
class PermissionsSettings(ProcessSettings):
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
class FromAkriSettings(ProcessSettings):
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
