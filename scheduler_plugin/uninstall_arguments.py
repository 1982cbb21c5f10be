"""The command line of what is run around an uninstallation; `arguments` has the rest."""

from __future__ import annotations

from typing import Annotated

import typer

from kube.api import Config, Kubeconfig, LogLevel
from scheduler_plugin.settings import InUseSettings, LeaveSettings

IN_USE = (
    "Say which pods use devices, before Moorage is uninstalled; the exit status is 1 then. Changes"
    " nothing."
)
LEAVE = "Take back what nobody else will, once Moorage is uninstalled."


def in_use(
    kubeconfig: Kubeconfig = None,
    log_level: LogLevel = "WARNING",
    remedy: Annotated[
        str, typer.Option(metavar="TEXT", help="What is printed last where a pod uses a device.")
    ] = "",
    config: Config = "",
) -> InUseSettings:
    return InUseSettings(kubeconfig=kubeconfig, log_level=log_level, remedy=remedy)


def leave(
    kubeconfig: Kubeconfig = None,
    log_level: LogLevel = "INFO",
    purge: Annotated[
        bool,
        typer.Option(
            "--purge",
            help="Delete the definitions, and so all Queues, Configurations and Instances.",
        ),
    ] = False,
    config: Config = "",
) -> LeaveSettings:
    return LeaveSettings(kubeconfig=kubeconfig, log_level=log_level, purge=purge)
