"""Settings of `moorage-driver permissions`."""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from driver.configurations.permissions import Account

STDIN = "-"


@dataclass(frozen=True, slots=True, kw_only=True)
class PermissionsSettings:
    """Settings of `moorage-driver permissions`.

    Attributes:
        files: With Configurations, `-` for the standard input; none for those of the cluster.
        kubeconfig: None for the ServiceAccount of the pod.
        account: Who is to be allowed to read.
    """

    files: tuple[str, ...]
    kubeconfig: Path | None
    log_level: str
    account: Account


def permissions_arguments(parser: argparse.ArgumentParser, environ: Mapping[str, str]) -> None:
    """Add the flags that are the command's own."""
    parser.add_argument(
        "-f",
        "--filename",
        action="append",
        default=[],
        metavar="FILE",
        help="a file with Configurations, or - (default: all Configurations of the cluster)",
    )
    parser.add_argument(
        "--namespace",
        default=environ.get("POD_NAMESPACE") or "moorage-system",
        help="namespace of the drivers (default: $POD_NAMESPACE, else moorage-system)",
    )
    parser.add_argument(
        "--service-account",
        default="driver-node",
        metavar="NAME",
        help="of the drivers on nodes (default: driver-node)",
    )


def permissions_settings(arguments: argparse.Namespace) -> PermissionsSettings:
    """What was given on the command line."""
    return PermissionsSettings(
        files=tuple(arguments.filename),
        kubeconfig=arguments.kubeconfig,
        log_level=arguments.log_level,
        account=Account(arguments.namespace, arguments.service_account),
    )
