"""Options of several commands of `moorage-scheduler-plugin`, and their defaults."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any

import typer

from driver.api import Problem
from kube.api import parsed, refuse
from scheduler_plugin import settings_texts as texts
from scheduler_plugin.extender.listening import KUBE_SCHEDULER, Listening, parse_pages_address


def file_option(what: str) -> Any:
    return typer.Option(metavar="FILE", help=f"{what}.")


Lease = Annotated[
    Sequence[str],
    parsed(
        texts.lease_name,
        metavar="NAMESPACE/NAME",
        help_="kube-scheduler's Lease.",
        shown="moorage-system/moorage-scheduler",
    ),
]
ListenAddress = Annotated[
    str,
    typer.Option(
        metavar="HOST:PORT",
        help="The address for kube-scheduler's calls: loopback, unless there is mutual TLS.",
    ),
]
TlsCertFile = Annotated[str, file_option("The certificate of the server")]
TlsPrivateKeyFile = Annotated[str, file_option("The key of that certificate")]
ClientCaFile = Annotated[str, file_option("The CA of kube-scheduler's client certificate")]
ClientNames = Annotated[
    Sequence[str],
    parsed(
        texts.names,
        metavar="NAME[,NAME...]",
        help_="The names of that certificate, as common name, DNS name or URI; clients with other"
        " names of the same CA are refused.",
        shown=KUBE_SCHEDULER,
    ),
]
Certificates = Annotated[
    str,
    typer.Option(
        metavar="FOLDER",
        help="The folder of `write-certificates`, in place of single files; its path there.",
    ),
]

DashboardTlsSecret = Annotated[
    Sequence[str],
    parsed(
        texts.secret_name,
        metavar="NAMESPACE/NAME",
        help_="The Secret with the certificates of the plugin and the dashboard for each other; the"
        " elected plugin fills it.",
        shown="moorage-system/moorage-dashboard-tls",
    ),
]

LEASE = ("moorage-system", "moorage-scheduler")
DASHBOARD_SECRET = ("moorage-system", "moorage-dashboard-tls")
DASHBOARD_PORT = 10265
ADDRESS = "127.0.0.1:10261"
PAGES_ADDRESS = "127.0.0.1:10262"
NAMES = (KUBE_SCHEDULER,)

FOLDER = "/etc/kubernetes/moorage"
CLUSTERS_LEASE = ("kube-system", "kube-scheduler")
CLUSTERS_SCHEDULERS = ("default-scheduler",)
"""The profile of the cluster's own kube-scheduler."""

PagesAddress = Annotated[
    str,
    typer.Option(
        metavar="HOST:PORT",
        help="The address of `serve` for probes (default: that in the file of --plugin-config, if"
        f" it can be read here; else {PAGES_ADDRESS}).",
    ),
]

PlainHttp = Annotated[
    bool,
    typer.Option(
        "--plain-http",
        help="Use no certificates: every process on the machine's network may bind pods.",
    ),
]

StaticPodFolder = Annotated[
    str,
    typer.Option(
        metavar="FOLDER",
        help="The folder on the host with `scheduler.yaml`, kube-scheduler's configuration,"
        " `plugin.conf`, the plugin's kubeconfig, and the files of `write-certificates`.",
    ),
]

Wait = Annotated[
    float,
    parsed(
        texts.seconds,
        metavar="SECONDS",
        help_="How long the check is repeated while something is wrong. After an installation,"
        " kube-scheduler is elected some seconds after it is ready (default: not repeated).",
    ),
]


def safe(parsed_: Listening | Problem) -> Listening:
    """The address; exits with a sentence if it is unsafe or invalid."""
    if isinstance(parsed_, Problem):
        raise refuse(f"{parsed_.path}: {parsed_.message}")
    return parsed_


def address(text: str) -> Listening:
    """An address with a port, or a port of all addresses.

    Raises:
        ValueError: The text is neither.
    """
    found = parse_pages_address(text)
    if isinstance(found, Problem):
        raise ValueError(found.message)  # noqa: TRY004  Of a text, not of its type.
    return found
