"""The command line of the commands for an uninstallation; `arguments` has the others."""

from __future__ import annotations

from typing import Annotated

import typer

from kube.api import Config, Kubeconfig, LogLevel
from scheduler_plugin.settings import InUseSettings, LeaveSettings

IN_USE = (
    "List the pods that use devices, before Moorage is uninstalled; the exit status is 1 if there"
    " are any. It changes nothing."
)
LEAVE = "Remove finalizers, slices and classes of Moorage, once it is uninstalled."


def in_use(
    kubeconfig: Kubeconfig = None,
    log_level: LogLevel = "WARNING",
    remedy: Annotated[
        str, typer.Option(metavar="TEXT", help="A text to print last if a pod uses a device.")
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
            help="Delete the definitions, and so all Queues, Configurations and Instances, too.",
        ),
    ] = False,
    config: Config = "",
) -> LeaveSettings:
    return LeaveSettings(kubeconfig=kubeconfig, log_level=log_level, purge=purge)
