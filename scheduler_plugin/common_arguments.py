"""Options that several commands of `moorage-scheduler-plugin` take, and their defaults."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any

import typer

from driver.api import Problem
from kube.processes.api import parsed, refuse
from scheduler_plugin import settings_texts as texts
from scheduler_plugin.extender.listening import KUBE_SCHEDULER, Listening, parse_pages_address


def file_option(what: str) -> Any:
    return typer.Option(metavar="FILE", help=f"{what}.")


Lease = Annotated[
    Sequence[str],
    parsed(
        texts.lease_name,
        metavar="NAMESPACE/NAME",
        help_="Name the Lease with which kube-scheduler is elected.",
        shown="moorage-system/moorage-scheduler",
    ),
]
ListenAddress = Annotated[
    str,
    typer.Option(
        metavar="HOST:PORT",
        help="Answer kube-scheduler at this address: a loopback address, or any with mutual TLS.",
    ),
]
TlsCertFile = Annotated[
    str, file_option("Read the server's certificate from this file (default: no TLS)")
]
TlsPrivateKeyFile = Annotated[
    str, file_option("Read the server's private key from this file (default: no TLS)")
]
ClientCaFile = Annotated[
    str,
    file_option(
        "Read the authority of kube-scheduler's certificate from this file (default: no TLS)"
    ),
]
ClientNames = Annotated[
    Sequence[str],
    parsed(
        texts.names,
        metavar="NAME[,NAME...]",
        help_="Accept only client certificates with one of these names, as common name, DNS name or"
        " URI.",
        shown=KUBE_SCHEDULER,
    ),
]
Certificates = Annotated[
    str,
    typer.Option(
        metavar="FOLDER",
        help="Use the files of `write-certificates` in this folder of the control plane, in place"
        " of single files (default: none).",
    ),
]

DashboardTlsSecret = Annotated[
    Sequence[str],
    parsed(
        texts.secret_name,
        metavar="NAMESPACE/NAME",
        help_="Name the Secret with the certificates of plugin and dashboard; the elected plugin"
        " writes it.",
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
"""The scheduler name of the cluster's own kube-scheduler."""

PagesAddress = Annotated[
    str,
    typer.Option(
        metavar="HOST:PORT",
        help="Set --pages-address of `serve`, where the pod's probes ask (default: that in the file"
        f" of --plugin-config, if it can be read here; else {PAGES_ADDRESS}).",
    ),
]

PlainHttp = Annotated[
    bool,
    typer.Option(
        "--plain-http",
        help="Use HTTP without certificates; then every process on the machine's network may bind"
        " pods (default: TLS).",
    ),
]

StaticPodFolder = Annotated[
    str,
    typer.Option(
        metavar="FOLDER",
        help="Set the folder of the host with kube-scheduler's configuration `scheduler.yaml`, the"
        " plugin's kubeconfig `plugin.conf`, and the files of `write-certificates`.",
    ),
]

Wait = Annotated[
    float,
    parsed(
        texts.seconds,
        metavar="SECONDS",
        help_="Repeat the check for this many seconds while something is wrong, as right after an"
        " installation (default: check once).",
    ),
]


def safe(parsed_: Listening | Problem) -> Listening:
    """The address; exits with a sentence if it is not valid or not safe."""
    if isinstance(parsed_, Problem):
        raise refuse(f"{parsed_.path}: {parsed_.message}")
    return parsed_


def address(text: str) -> Listening:
    """Parse `host:port`, or `:port` for all addresses.

    Raises:
        ValueError: If the text is neither.
    """
    found = parse_pages_address(text)
    if isinstance(found, Problem):
        raise ValueError(found.message)  # noqa: TRY004  The value is wrong, not its type.
    return found
