"""Settings of `moorage-scheduler-plugin serve`: a flag for each field."""

from __future__ import annotations

import os
import socket
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import Annotated

import typer

from driver.api import DRIVER_NAME
from kube.kinds import SECRETS
from kube.processes.api import (
    Config,
    Kubeconfig,
    LogFormat,
    LogLevel,
    TracingEndpoint,
    not_empty,
    parsed,
)
from kube.resources import ObjectPath
from scheduler_plugin import settings_texts as texts
from scheduler_plugin.accounting_arguments import ReleaseSettings
from scheduler_plugin.cleanup.stale_claims import GRACE as LEFTOVER_GRACE
from scheduler_plugin.common_arguments import (
    ADDRESS,
    DASHBOARD_SECRET,
    LEASE,
    NAMES,
    PAGES_ADDRESS,
    ClientCaFile,
    ClientNames,
    DashboardTlsSecret,
    Lease,
    ListenAddress,
    TlsCertFile,
    TlsPrivateKeyFile,
    address,
    safe,
)
from scheduler_plugin.extender.kube_scheduler_lease import LeaseSettings
from scheduler_plugin.extender.listening import (
    Listening,
    TlsFiles,
    parse_listening,
    parse_pages_address,
)
from scheduler_plugin.objects.names import AccountingSettings, ReclaimPolicy


@dataclass(frozen=True, kw_only=True)
class ServeSettings(ReleaseSettings):
    """Settings of `moorage-scheduler-plugin serve`."""

    kubeconfig: Kubeconfig = None
    log_level: LogLevel = "INFO"
    log_format: LogFormat = "text"
    tracing_endpoint: TracingEndpoint = ""
    config: Config = ""
    pod_name: Annotated[str, typer.Option(envvar="POD_NAME", hidden=True)] = ""
    lease: Lease = LEASE
    scheduler_identity: Annotated[
        str,
        parsed(
            not_empty,
            metavar="NAME",
            help_="Set the host name of the kube-scheduler beside this process, with which the"
            " Lease's holder begins before `_` (default: this host's name).",
        ),
    ] = socket.gethostname()
    listen_address: ListenAddress = ADDRESS
    pages_address: Annotated[
        str,
        typer.Option(
            metavar="HOST:PORT",
            help="Serve metrics, probes and places in line at this address; :PORT is all"
            " addresses.",
        ),
    ] = PAGES_ADDRESS
    dashboard_address: Annotated[
        Listening | None,
        parsed(
            lambda text: address(text) if text else None,
            metavar="HOST:PORT",
            help_="Answer the dashboard at this address over mutual TLS; :PORT is all addresses"
            " (default: no listener).",
        ),
    ] = None
    dashboard_tls_secret: DashboardTlsSecret = DASHBOARD_SECRET
    tls_cert_file: TlsCertFile = ""
    tls_private_key_file: TlsPrivateKeyFile = ""
    client_ca_file: ClientCaFile = ""
    client_names: ClientNames = NAMES
    accounted_drivers: Annotated[Sequence[str], texts.ACCOUNTED_DRIVERS] = (DRIVER_NAME,)
    leftover_grace: Annotated[
        timedelta,
        parsed(
            lambda text: timedelta(seconds=texts.seconds(text)),
            metavar="SECONDS",
            help_="Set the seconds after which an unused allocation, and pods that ended, are"
            " removed from a claim.",
            shown=f"{LEFTOVER_GRACE.total_seconds():.0f}",
        ),
    ] = LEFTOVER_GRACE
    reclaim: Annotated[
        ReclaimPolicy,
        typer.Option(
            help="Evict pods of queues above their quota for pods of queues below it, or never."
        ),
    ] = ReclaimPolicy.QUOTA
    evictions_per_minute: Annotated[int, texts.EVICTIONS] = texts.MOST_EVICTIONS
    stale_gang_grace: Annotated[timedelta | None, texts.GRACE] = texts.STALE_GANG_GRACE

    def __post_init__(self) -> None:
        _ = self.listening, self.pages

    @property
    def instance(self) -> str:
        """The name of this process in Events."""
        return self.pod_name or f"{socket.gethostname()}_{os.getpid()}"

    @property
    def listening(self) -> Listening:
        """The address that kube-scheduler calls."""
        tls = TlsFiles(
            certificate=self.tls_cert_file,
            key=self.tls_private_key_file,
            client_ca=self.client_ca_file,
            client_names=frozenset(self.client_names),
        )
        return safe(parse_listening(self.listen_address, tls))

    @property
    def pages(self) -> Listening:
        """The address of the read-only pages."""
        return safe(parse_pages_address(self.pages_address))

    @property
    def elected_by(self) -> LeaseSettings:
        """The Lease of the kube-scheduler beside this process."""
        namespace, name = self.lease
        return LeaseSettings(namespace=namespace, name=name, identity=self.scheduler_identity)

    @property
    def dashboard_secret(self) -> ObjectPath:
        """The Secret with the certificates for the dashboard."""
        namespace, name = self.dashboard_tls_secret
        return SECRETS.at(name, namespace)

    @property
    def accounting(self) -> AccountingSettings:
        return replace(super().accounting, accounted_drivers=tuple(self.accounted_drivers))
