"""Options and arguments that several commands of `kubectl moorage` take."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from scheduler_plugin.asking.view_settings import Output

Kubeconfig = Annotated[
    Path | None,
    typer.Option(
        envvar="KUBECONFIG",
        metavar="FILE",
        help="Read the kubeconfig from this file (default: kubectl's).",
    ),
]
Context = Annotated[
    str,
    typer.Option(
        metavar="NAME", help="Use this context of the kubeconfig (default: the current one)."
    ),
]
OutputFormat = Annotated[
    Output,
    typer.Option(
        "--output",
        "-o",
        help="Print a table, a wide table with more columns, or JSON or YAML for programs.",
    ),
]
Release = Annotated[
    str,
    typer.Option(
        metavar="NAME",
        help="Set the namespace of the release, whose accounting settings are used.",
    ),
]
File = Annotated[
    Path | None,
    typer.Option(
        metavar="FILE",
        exists=True,
        dir_okay=False,
        help="Read this snapshot in place of a cluster (default: the cluster).",
    ),
]
Namespace = Annotated[
    str,
    typer.Option(
        "--namespace",
        "-n",
        metavar="NAME",
        help="Set the namespace of the objects (default: the context's namespace).",
    ),
]
OtherNamespace = Annotated[
    str,
    typer.Option(
        "--namespace",
        "-n",
        metavar="NAME",
        help="Show only objects of this namespace (default: all namespaces).",
    ),
]
AllNamespaces = Annotated[
    bool,
    typer.Option(
        "--all-namespaces",
        "-A",
        help="Show the objects of all namespaces (default: those of one namespace).",
    ),
]
IgnoredNamespace = Annotated[str, typer.Option("--namespace", "-n", metavar="NAME", hidden=True)]
"""As with kubectl, cluster-scoped objects are the same with and without the flag."""
IgnoredAllNamespaces = Annotated[bool, typer.Option("--all-namespaces", "-A", hidden=True)]
Selector = Annotated[
    str,
    typer.Option(
        "--selector",
        "-l",
        metavar="SELECTOR",
        help="Show only objects with these labels, such as -l team=vision (default: all).",
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
        help="Simulate the pods of this file, with its claims and templates (default: none).",
    ),
]
Queues = Annotated[
    list[Path] | None,
    typer.Option(
        "--queue",
        metavar="FILE",
        exists=True,
        dir_okay=False,
        help="Simulate the new or changed Queues of this file (default: none).",
    ),
]
ForeignFiles = Annotated[
    list[Path],
    typer.Argument(metavar="FILE...", exists=True, dir_okay=False, allow_dash=True),
]
GPUClass = Annotated[
    str,
    typer.Option(
        metavar="CLASS",
        help="Set the DeviceClass of whole GPUs: of KAI's spec.resources.gpu, and of the resource"
        " nvidia.com/gpu (default: they are reported).",
    ),
]
DeviceClasses = Annotated[
    list[str] | None,
    typer.Option(
        metavar="RESOURCE=CLASS",
        help="Set the DeviceClass of a resource, such as example.com/gpu=gpu.example.com (default:"
        " that of the DeviceClasses in the files, else it is reported).",
    ),
]
Strict = Annotated[
    bool,
    typer.Option(
        "--strict",
        help="Print no Queues, and exit with 3, if something cannot be said (default: print what"
        " can be, and exit with 0).",
    ),
]

RELEASE = "moorage-system"
