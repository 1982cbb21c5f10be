"""What flags of `moorage-driver` may say, and those that several of its commands have."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from pathlib import Path
from typing import Annotated, Any, Literal

import typer

from driver.api import parse_duration
from driver.discovery.handlers import HANDLER_NAMES
from driver.discovery.reach import Network, parse_networks
from driver.offer_paths import OfferPath
from driver.running.metrics_address import DEFAULT as DEFAULT_METRICS_ADDRESS
from driver.running.metrics_address import Address, parse_address
from kube.api import parsed


def duration(text: str) -> timedelta:
    duration = parse_duration(text)
    if not duration:
        raise ValueError(f"{text!r} is no duration such as 30s or 5m")
    return duration


def positive(text: str) -> int:
    if not text.isdecimal() or not int(text):
        raise ValueError(f"{text!r} is no number above 0")
    return int(text)


def handler_names(text: str) -> frozenset[str]:
    names = frozenset(name for part in text.split(",") if (name := part.strip()))
    if unknown := sorted(names.difference(HANDLER_NAMES)):
        there_are = ", ".join(HANDLER_NAMES)
        raise ValueError(f"no handler {', '.join(unknown)}; there are {there_are}")
    return names


def handler_name(text: str) -> str:
    if text not in HANDLER_NAMES:
        raise typer.BadParameter(f"no handler {text}; there are {', '.join(HANDLER_NAMES)}")
    return text


def host_paths(text: str) -> tuple[str, ...]:
    paths = tuple(path for part in text.split(",") if (path := part.strip()))
    if odd := [path for path in paths if not path.startswith("/") or ".." in path.split("/")]:
        raise ValueError(f"{odd[0]!r} is no absolute path")
    return paths


def path_or_none(text: str) -> Path | None:
    return Path(text) if text else None


def _seconds(seconds: int, help_: str) -> Any:
    return parsed(duration, metavar="DURATION", help_=help_, shown=f"{seconds}s")


def pem_file(help_: str, **more: Any) -> Any:
    return typer.Option(metavar="FILE", help=f"PEM: {help_}", **more)


YesOrNo = Literal["true", "false"]
HostPaths = Sequence[str]

MetricsAddress = Annotated[
    Address | None,
    parsed(
        parse_address,
        metavar="[HOST]:PORT",
        help_="Serve /metrics, /healthz and /readyz here; empty: nowhere.",
        shown=str(DEFAULT_METRICS_ADDRESS),
    ),
]
OfferedBy = Annotated[
    OfferPath,
    typer.Option(
        "--path",
        help="How devices are offered: auto takes dra where pods may ask for DRA devices as"
        " extended resources, else device-plugin; the same for nodes and the shared driver.",
    ),
]
UniqueDevicesDefault = Annotated[
    YesOrNo,
    typer.Option(help="What spec.uniqueDevices means in a Configuration that does not set it."),
]
RescanInterval = Annotated[
    timedelta, _seconds(60, "How often all devices are read anew, beside the kernel's events.")
]
RediscoveryInterval = Annotated[
    timedelta, _seconds(10, "How often networks are asked for cameras and OPC UA servers.")
]
DiscoveryNetworks = Annotated[
    Sequence[Network],
    parsed(
        parse_networks,
        metavar="NETWORKS",
        help_="Such as 10.20.0.0/16, with commas between them: addresses of cameras and OPC UA"
        " servers that are asked whoever tells of them (default: none, each tells of itself).",
    ),
]
ServiceNetworks = Annotated[
    Sequence[Network] | None,
    parsed(
        parse_networks,
        metavar="NETWORKS",
        help_="Of the cluster's services, where no camera is (default: around"
        " $KUBERNETES_SERVICE_HOST).",
    ),
]
ServiceHost = Annotated[str, typer.Option(envvar="KUBERNETES_SERVICE_HOST", hidden=True)]
DebugEchoFile = Annotated[
    Path, typer.Option(metavar="FILE", help="While it says OFFLINE, debugEcho finds nothing.")
]
DebugEchoShared = Annotated[
    YesOrNo,
    typer.Option(
        envvar="DEBUG_ECHO_INSTANCES_SHARED",
        help="Whether nodes share debugEcho's devices, where the details do not say.",
    ),
]
