"""Options and arguments that several commands of `kubectl moorage` take."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from scheduler_plugin.asking.view_settings import Output

Kubeconfig = Annotated[
    Path | None,
    typer.Option(envvar="KUBECONFIG", metavar="FILE", help="Default: as for kubectl."),
]
Context = Annotated[
    str, typer.Option(metavar="NAME", help="Of the kubeconfig. Default: its current one.")
]
Told = Annotated[Output, typer.Option("--output", "-o", help="table or wide; others for programs.")]
Release = Annotated[
    str, typer.Option(metavar="NAME", help="Namespace of the release, whose settings count.")
]
File = Annotated[
    Path | None,
    typer.Option(
        metavar="FILE", exists=True, dir_okay=False, help="Read a snapshot, and no cluster."
    ),
]
Namespace = Annotated[
    str, typer.Option("--namespace", "-n", metavar="NAME", help="Default: that of the context.")
]
OtherNamespace = Annotated[
    str, typer.Option("--namespace", "-n", metavar="NAME", help="Default: all namespaces.")
]
AllNamespaces = Annotated[
    bool, typer.Option("--all-namespaces", "-A", help="Those of all namespaces.")
]
Unheard = Annotated[str, typer.Option("--namespace", "-n", metavar="NAME", hidden=True)]
"""As with kubectl: what has no namespace is the same with the flag."""
UnheardAll = Annotated[bool, typer.Option("--all-namespaces", "-A", hidden=True)]
Selector = Annotated[
    str,
    typer.Option(
        "--selector", "-l", metavar="SELECTOR", help="By labels, as for kubectl: -l team=vision."
    ),
]
Names = Annotated[list[str] | None, typer.Argument(metavar="[NAME]...", show_default=False)]
Manifests = Annotated[
    list[Path] | None,
    typer.Option(
        "--pod",
        metavar="FILE",
        exists=True,
        dir_okay=False,
        help="Pods, and claims and templates that come with them.",
    ),
]
Queues = Annotated[
    list[Path] | None,
    typer.Option(
        "--queue", metavar="FILE", exists=True, dir_okay=False, help="Queues as they would be."
    ),
]

RELEASE = "moorage-system"
