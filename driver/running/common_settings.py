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
from kube.api import (
    Config,
    Kubeconfig,
    LogFormat,
    LogLevel,
    parsed,
)


@dataclass(frozen=True, kw_only=True)
class ProcessSettings:
    """What every command has."""

    log_level: LogLevel = "INFO"
    log_format: LogFormat = "text"
    config: Config = ""


@dataclass(frozen=True, kw_only=True)
class DriverSettings(ProcessSettings):
    """What both drivers have."""

    kubeconfig: Kubeconfig = None
    metrics_address: Annotated[
        Address | None,
        parsed(
            parse_address,
            metavar="[HOST]:PORT",
            help_="Serve /metrics, /healthz and /readyz here; empty: nowhere.",
            shown=str(DEFAULT_METRICS_ADDRESS),
        ),
    ] = DEFAULT_METRICS_ADDRESS
    path: Annotated[
        OfferPath,
        typer.Option(
            help="How devices are offered: auto takes dra where pods may ask for DRA devices as"
            " extended resources, else device-plugin; the same for nodes and the shared driver.",
        ),
    ] = OfferPath.AUTO
    unique_devices_default: Annotated[
        YesOrNo,
        typer.Option(help="What spec.uniqueDevices means in a Configuration that does not set it."),
    ] = "true"


@dataclass(frozen=True, kw_only=True)
class DiscoverySettings(ProcessSettings):
    """What discovery handlers are told, in whichever process."""

    rescan_interval: Annotated[
        timedelta,
        lasting("How often all devices are read anew, beside the kernel's events.", "60s"),
    ] = timedelta(seconds=60)
    rediscovery_interval: Annotated[
        timedelta, lasting("How often networks are asked for cameras and OPC UA servers.", "10s")
    ] = timedelta(seconds=10)
    discovery_networks: Annotated[
        Sequence[Network],
        parsed(
            parse_networks,
            metavar="NETWORKS",
            help_="Such as 10.20.0.0/16, with commas between them: addresses of cameras and OPC UA"
            " servers that are asked whoever tells of them (default: none, each tells of itself).",
        ),
    ] = ()
    service_networks: Annotated[
        Sequence[Network] | None,
        parsed(
            parse_networks,
            metavar="NETWORKS",
            help_="Of the cluster's services, where no camera is (default: around"
            " $KUBERNETES_SERVICE_HOST).",
        ),
    ] = None
    kubernetes_service_host: Annotated[
        str, typer.Option(envvar="KUBERNETES_SERVICE_HOST", hidden=True)
    ] = ""
    debug_echo_file: Annotated[
        Path, typer.Option(metavar="FILE", help="While it says OFFLINE, debugEcho finds nothing.")
    ] = DEBUG_ECHO_FILE
    debug_echo_shared: Annotated[
        YesOrNo,
        typer.Option(
            envvar="DEBUG_ECHO_INSTANCES_SHARED",
            help="Whether nodes share debugEcho's devices, where the details do not say.",
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
