"""Settings of `moorage-scheduler-plugin dashboard`: a flag for each field."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from kube.kinds import LEASES, SECRETS
from kube.processes.api import Config, Kubeconfig, LogFormat, LogLevel, parsed
from kube.resources import ObjectPath
from scheduler_plugin import settings_texts as texts
from scheduler_plugin.accounting_arguments import ReleaseSettings
from scheduler_plugin.common_arguments import (
    DASHBOARD_PORT,
    DASHBOARD_SECRET,
    LEASE,
    DashboardTlsSecret,
    Lease,
    address,
)
from scheduler_plugin.extender.listening import Listening

ADDRESS = Listening(host="127.0.0.1", port=8080, tls=None)


@dataclass(frozen=True, kw_only=True)
class DashboardSettings(ReleaseSettings):
    """Settings of `moorage-scheduler-plugin dashboard`.

    The accounting settings must be those of the plugin.
    """

    kubeconfig: Kubeconfig = None
    log_level: LogLevel = "INFO"
    log_format: LogFormat = "text"
    config: Config = ""
    listen_address: Annotated[
        Listening,
        parsed(
            address,
            metavar="HOST:PORT",
            help_="Serve the page and /readyz at this address over plain HTTP; :PORT is all"
            " addresses.",
            shown="127.0.0.1:8080",
        ),
    ] = ADDRESS
    lease: Lease = LEASE
    plugin_port: Annotated[
        int,
        parsed(
            texts.port,
            metavar="PORT",
            help_="Set the port of the plugin's --dashboard-address, where the dashboard asks the"
            " elected plugin for places in line and for what it holds for pods; 0 turns this off.",
            shown=str(DASHBOARD_PORT),
        ),
    ] = DASHBOARD_PORT
    dashboard_tls_secret: DashboardTlsSecret = DASHBOARD_SECRET

    @property
    def lease_path(self) -> ObjectPath:
        namespace, name = self.lease
        return LEASES.at(name, namespace)

    @property
    def secret_path(self) -> ObjectPath:
        namespace, name = self.dashboard_tls_secret
        return SECRETS.at(name, namespace)
