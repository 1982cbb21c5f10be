"""Options that several commands of `moorage-scheduler-plugin` take, and what they default to."""

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
        help="Where kube-scheduler calls: loopback, unless there is mutual TLS.",
    ),
]
TlsCertFile = Annotated[str, file_option("Certificate of the server")]
TlsPrivateKeyFile = Annotated[str, file_option("Its key")]
ClientCaFile = Annotated[
    str, file_option("The authority of the certificate that kube-scheduler must show")
]
ClientNames = Annotated[
    Sequence[str],
    parsed(
        texts.names,
        metavar="NAME[,NAME...]",
        help_="Whom that certificate must name, as common name, DNS name or URI; others of the same"
        " authority are not heard.",
        shown=KUBE_SCHEDULER,
    ),
]
Certificates = Annotated[
    str,
    typer.Option(
        metavar="FOLDER",
        help="Of `write-certificates`, in place of the single files; its path there.",
    ),
]

DashboardTlsSecret = Annotated[
    Sequence[str],
    parsed(
        texts.secret_name,
        metavar="NAMESPACE/NAME",
        help_="Secret with the certificates by which the plugin and the dashboard know each other;"
        " the elected plugin fills it.",
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
"""Of the cluster's own kube-scheduler."""

PagesAddress = Annotated[
    str,
    typer.Option(
        metavar="HOST:PORT",
        help="Of `serve`; the pod's probes ask there (default: what the file of --plugin-config"
        f" says, if it can be read here; else {PAGES_ADDRESS}).",
    ),
]

PlainHttp = Annotated[
    bool,
    typer.Option(
        "--plain-http",
        help="Without certificates: every process on the machine's network may bind pods.",
    ),
]

StaticPodFolder = Annotated[
    str,
    typer.Option(
        metavar="FOLDER",
        help="On the host, with `scheduler.yaml`, kube-scheduler's configuration,"
        " `plugin.conf`, the plugin's kubeconfig, and the files of `write-certificates`.",
    ),
]

Wait = Annotated[
    float,
    parsed(
        texts.seconds,
        metavar="SECONDS",
        help_="How long it is looked again while something is wrong, as after an installation:"
        " kube-scheduler is elected some seconds after it is ready (default: not at all).",
    ),
]


def safe(parsed_: Listening | Problem) -> Listening:
    """Exits with a sentence where to listen like this is no good idea."""
    if isinstance(parsed_, Problem):
        raise refuse(f"{parsed_.path}: {parsed_.message}")
    return parsed_


def address(text: str) -> Listening:
    """An address of any kind, or a port of all addresses.

    Raises:
        ValueError: It is neither.
    """
    found = parse_pages_address(text)
    if isinstance(found, Problem):
        raise ValueError(found.message)  # noqa: TRY004  Of a text, not of its type.
    return found
