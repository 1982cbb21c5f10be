"""Options of `moorage-scheduler-plugin check`; `arguments` has the command."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Literal

import typer

from kube.processes.api import not_empty, parsed
from scheduler_plugin import settings_texts as texts
from scheduler_plugin.common_arguments import LEASE

Namespace = Annotated[
    str,
    parsed(not_empty, metavar="NAME", help_="Set the namespace of the release.", shown=LEASE[0]),
]
ReleaseLease = Annotated[
    Sequence[str] | None,
    parsed(
        texts.lease_name,
        metavar="NAMESPACE/NAME",
        help_="Name the Lease with which kube-scheduler is elected (default: moorage-scheduler in"
        " the release's namespace).",
    ),
]
Account = Annotated[
    str,
    typer.Option(
        metavar="USER",
        help="Set the user name of the plugin at the API server (default: its ServiceAccount in the"
        " release's namespace).",
    ),
]
SchedulerConfig = Annotated[
    Path | None,
    typer.Option(
        metavar="FILE",
        exists=True,
        dir_okay=False,
        help="Read kube-scheduler's configuration from this file (default: that of the release).",
    ),
]
Output = Annotated[
    Literal["text", "json"],
    typer.Option("--output", "-o", help="Print text for people, or JSON for programs."),
]
