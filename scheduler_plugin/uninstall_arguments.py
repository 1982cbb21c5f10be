"""The command line of the commands around an uninstallation; `arguments` has the rest."""

from __future__ import annotations

from typing import Annotated

import typer

from kube.processes.api import Config, Kubeconfig, LogLevel
from scheduler_plugin.settings import InUseSettings, LeaveSettings

IN_USE = (
    "Print the pods that use devices before Moorage is uninstalled, and the brokers, and exit with"
    " status 1 if there are any; change nothing."
)
LEAVE = "Remove Moorage's finalizers, slices and classes once Moorage is uninstalled."


def in_use(
    kubeconfig: Kubeconfig = None,
    log_level: LogLevel = "WARNING",
    remedy: Annotated[
        str,
        typer.Option(
            metavar="TEXT",
            help="Print this text last if a pod uses a device, or a broker runs (default: none).",
        ),
    ] = "",
    brokers: Annotated[
        bool,
        typer.Option(
            "--brokers",
            help="Look for brokers that run for devices of Configurations, too (default: only for"
            " uses of devices).",
        ),
    ] = False,
    config: Config = "",
) -> InUseSettings:
    return InUseSettings(kubeconfig=kubeconfig, log_level=log_level, remedy=remedy, brokers=brokers)


def leave(
    kubeconfig: Kubeconfig = None,
    log_level: LogLevel = "INFO",
    purge: Annotated[
        bool,
        typer.Option(
            "--purge",
            help="Delete the definitions, and so all Queues, Configurations and Instances (default:"
            " keep them).",
        ),
    ] = False,
    config: Config = "",
) -> LeaveSettings:
    return LeaveSettings(kubeconfig=kubeconfig, log_level=log_level, purge=purge)
