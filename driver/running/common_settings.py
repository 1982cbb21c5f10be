"""Settings that several commands of `moorage-driver` have."""

# No annotations from __future__: Typer would evaluate their text in the modules of subclasses.

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Annotated

import typer

from driver.discovery.handlers import DEBUG_ECHO_FILE, HandlerSettings
from driver.discovery.reach import Network, Reach, parse_networks, services_around
from driver.offer_paths import OfferPath
from driver.running.arguments import (
    DEFAULT_METRICS_ADDRESS,
    Address,
    YesOrNo,
    lasting,
    parse_address,
)
from kube.processes.api import Config, Kubeconfig, LogFormat, LogLevel, parsed


@dataclass(frozen=True, kw_only=True)
class ProcessSettings:
    """Settings of every command."""

    log_level: LogLevel = "INFO"
    log_format: LogFormat = "text"
    config: Config = ""


@dataclass(frozen=True, kw_only=True)
class DriverSettings(ProcessSettings):
    """Settings of the drivers of nodes and of the shared driver."""

    kubeconfig: Kubeconfig = None
    metrics_address: Annotated[
        Address | None,
        parsed(
            parse_address,
            metavar="[HOST]:PORT",
            help_="Address on which /metrics, /healthz and /readyz are served over HTTP. Empty"
            " means that they are not served.",
            shown=str(DEFAULT_METRICS_ADDRESS),
        ),
    ] = DEFAULT_METRICS_ADDRESS
    path: Annotated[
        OfferPath,
        typer.Option(
            help="Contract by which devices are offered. auto means dra if the API server lets pods"
            " request DRA devices as extended resources, otherwise device-plugin. Set the same"
            " value for the drivers of all nodes and for the shared driver.",
        ),
    ] = OfferPath.AUTO
    unique_devices_default: Annotated[
        YesOrNo,
        typer.Option(help="Value of spec.uniqueDevices for Configurations that do not set it."),
    ] = "true"


@dataclass(frozen=True, kw_only=True)
class DiscoverySettings(ProcessSettings):
    """Settings of discovery handlers, in the driver or in processes of their own."""

    rescan_interval: Annotated[
        timedelta,
        lasting("Interval at which all devices are read again, beside kernel events.", "60s"),
    ] = timedelta(seconds=60)
    rediscovery_interval: Annotated[
        timedelta, lasting("Interval of discovery of cameras and OPC UA servers.", "10s")
    ] = timedelta(seconds=10)
    discovery_networks: Annotated[
        Sequence[Network],
        parsed(
            parse_networks,
            metavar="NETWORKS",
            help_="Networks, such as 10.20.0.0/16, separated by commas. An address in them is"
            " contacted even if another host reports it (default: none; only addresses from which a"
            " camera or OPC UA server answers itself are contacted).",
        ),
    ] = ()
    service_networks: Annotated[
        Sequence[Network] | None,
        parsed(
            parse_networks,
            metavar="NETWORKS",
            help_="Networks of the cluster's Services, separated by commas, in which no device is"
            " contacted (default: the network around $KUBERNETES_SERVICE_HOST).",
        ),
    ] = None
    kubernetes_service_host: Annotated[
        str, typer.Option(envvar="KUBERNETES_SERVICE_HOST", hidden=True)
    ] = ""
    debug_echo_file: Annotated[
        Path,
        typer.Option(
            metavar="FILE", help="File that lets debugEcho find nothing while it contains OFFLINE."
        ),
    ] = DEBUG_ECHO_FILE
    debug_echo_shared: Annotated[
        YesOrNo,
        typer.Option(
            envvar="DEBUG_ECHO_INSTANCES_SHARED",
            help="Whether several nodes see the devices of debugEcho, unless discoveryDetails say.",
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
