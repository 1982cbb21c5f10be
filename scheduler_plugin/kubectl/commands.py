"""`kubectl moorage`: who has which device, who pays, and why a pod waits.

kubectl moorage queues                 the tree, with usage against quota and limit
kubectl moorage claims                 each accounted claim: who pays, who uses it
kubectl moorage charge QUEUE           what a queue pays for, and what it uses on others' account
kubectl moorage devices                where each device is, its state, and who uses its slots
kubectl moorage handlers               who discovers what on which node, and whether it does
kubectl moorage why POD                the verdict on a pod, and what would have to change
kubectl moorage simulate               what would be decided if something were different
kubectl moorage snapshot FILE          what the decisions rest on, as a file without secrets
kubectl moorage top                    queues and waiting pods, live

It reads with your kubeconfig and changes nothing; what it says is what the plugin decides by.
"""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer

from kube.api import commands, settings_of
from scheduler_plugin.settings import Output, Reading, View, ViewSettings

app = commands(
    "kubectl moorage",
    "Who has which device, who pays for it, and why a pod waits.",
    "Each flag may be given in the environment, too: --release-namespace is"
    " MOORAGE_RELEASE_NAMESPACE.",
)

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


def _shows(view: View, help_: str) -> None:
    """A command without arguments of its own."""

    @app.command(view, help=help_)
    def show(
        kubeconfig: Kubeconfig = None,
        context: Context = "",
        release_namespace: Release = RELEASE,
        output: Told = "table",
        snapshot: File = None,
    ) -> ViewSettings:
        reading = Reading(kubeconfig, context, release_namespace, output, snapshot)
        return ViewSettings(view=view, reading=reading)


_shows("queues", "The tree of queues, with usage against quota and limit.")
_shows("claims", "Each accounted claim: who pays for it, and who uses it.")


@app.command(help="What a queue pays for, and what it uses for free.")
def charge(
    queue: Annotated[str, typer.Argument(metavar="QUEUE")],
    kubeconfig: Kubeconfig = None,
    context: Context = "",
    release_namespace: Release = RELEASE,
    output: Told = "table",
    snapshot: File = None,
) -> ViewSettings:
    reading = Reading(kubeconfig, context, release_namespace, output, snapshot)
    return ViewSettings(view="charge", reading=reading, name=queue)


_shows("devices", "Where each device is, its state, and who uses its slots.")
_shows("handlers", "Who discovers what on which node, and whether it does.")


@app.command(help="Why a pod runs or waits, and what would help.")
def why(
    pod: Annotated[str, typer.Argument(metavar="POD")],
    namespace: Namespace = "",
    kubeconfig: Kubeconfig = None,
    context: Context = "",
    release_namespace: Release = RELEASE,
    output: Told = "table",
    snapshot: File = None,
) -> ViewSettings:
    reading = Reading(kubeconfig, context, release_namespace, output, snapshot)
    return ViewSettings(view="why", reading=reading, name=pod, namespace=namespace)


@app.command(help="What would be with another pod or Queue, or less a device.")
def simulate(
    pod: Manifests = None,
    queue: Queues = None,
    without_device: Annotated[
        list[str] | None, typer.Option(metavar="NAME", help="A device or an Instance.")
    ] = None,
    namespace: Namespace = "",
    kubeconfig: Kubeconfig = None,
    context: Context = "",
    release_namespace: Release = RELEASE,
    output: Told = "table",
    snapshot: File = None,
) -> ViewSettings:
    if not (pod or queue or without_device):
        raise typer.BadParameter("nothing is different: give --pod, --queue or --without-device.")
    return ViewSettings(
        view="simulate",
        reading=Reading(kubeconfig, context, release_namespace, output, snapshot),
        namespace=namespace,
        pods=tuple(pod or ()),
        queues=tuple(queue or ()),
        without_devices=tuple(without_device or ()),
    )


@app.command(help="Write all that decisions rest on to a file (- prints it).")
def snapshot(
    file: Annotated[str, typer.Argument(metavar="FILE")],
    kubeconfig: Kubeconfig = None,
    context: Context = "",
    release_namespace: Release = RELEASE,
) -> ViewSettings:
    reading = Reading(kubeconfig, context, release_namespace, "json")
    return ViewSettings(view="snapshot", reading=reading, file=file)


@app.command(help="Queues and waiting pods, live.")
def top(
    every: Annotated[
        float, typer.Option(min=0.2, metavar="SECONDS", help="How often it is shown anew.")
    ] = 1.0,
    kubeconfig: Kubeconfig = None,
    context: Context = "",
    release_namespace: Release = RELEASE,
    output: Told = "table",
) -> ViewSettings:
    reading = Reading(kubeconfig, context, release_namespace, output)
    return ViewSettings(view="top", reading=reading, every_seconds=every)


def main(argv: Sequence[str] | None = None) -> int:
    """Print what is asked for; 1 where there is no such thing, 2 where it cannot be told."""
    settings: ViewSettings = settings_of(app, sys.argv[1:] if argv is None else argv, os.environ)
    from kube.api import ApiError, KubeconfigError
    from scheduler_plugin.asking.kubectl_views import CannotTellError, NotThereError
    from scheduler_plugin.kubectl.main import run_view

    try:
        asyncio.run(run_view(settings))
    except (ApiError, KubeconfigError, NotThereError, CannotTellError) as error:
        sys.stderr.write(f"kubectl moorage {settings.view}: {error}\n")
        return 1 if isinstance(error, NotThereError) else 2
    except KeyboardInterrupt:
        return 130
    return 0
