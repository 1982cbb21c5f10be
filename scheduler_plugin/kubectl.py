"""`kubectl moorage`: who has which device, who pays, and why a pod waits.

kubectl moorage queues                 the tree, with usage against quota and limit
kubectl moorage claims                 each accounted claim: who pays, who uses it
kubectl moorage charge QUEUE           what a queue pays for, and what it uses on others' account
kubectl moorage why POD                the verdict on a pod, with its figures

It reads with your kubeconfig and changes nothing; what it says is what the plugin decides by.
"""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import Sequence
from typing import Annotated, Literal

import typer

from kube.api import Kubeconfig, commands, settings_of
from scheduler_plugin.settings import ViewSettings

app = commands("kubectl-moorage", "Who has which device, who pays for it, and why a pod waits.")

Output = Annotated[Literal["table", "json", "yaml"], typer.Option("--output", "-o")]
Release = Annotated[
    str, typer.Option(metavar="NAME", help="Namespace of the release, whose settings count.")
]


@app.command(help="The tree of queues, with usage against quota and limit.")
def queues(
    kubeconfig: Kubeconfig = None,
    release_namespace: Release = "moorage-system",
    output: Output = "table",
) -> ViewSettings:
    return ViewSettings("queues", kubeconfig, release_namespace, output)


@app.command(help="Each accounted claim: who pays for it, and who uses it.")
def claims(
    kubeconfig: Kubeconfig = None,
    release_namespace: Release = "moorage-system",
    output: Output = "table",
) -> ViewSettings:
    return ViewSettings("claims", kubeconfig, release_namespace, output)


@app.command(help="What a queue pays for, and what its pods use on somebody else's account.")
def charge(
    queue: Annotated[str, typer.Argument(metavar="QUEUE")],
    kubeconfig: Kubeconfig = None,
    release_namespace: Release = "moorage-system",
    output: Output = "table",
) -> ViewSettings:
    return ViewSettings("charge", kubeconfig, release_namespace, output, name=queue)


@app.command(help="Why a pod runs or waits: the verdict, and the figures that it rests on.")
def why(
    pod: Annotated[str, typer.Argument(metavar="POD")],
    namespace: Annotated[str, typer.Option("--namespace", "-n", metavar="NAME")] = "default",
    kubeconfig: Kubeconfig = None,
    release_namespace: Release = "moorage-system",
    output: Output = "table",
) -> ViewSettings:
    return ViewSettings("why", kubeconfig, release_namespace, output, name=pod, namespace=namespace)


def main(argv: Sequence[str] | None = None) -> int:
    """Print what is asked for; 1 where there is no such thing, 2 where it cannot be told."""
    settings = settings_of(app, sys.argv[1:] if argv is None else argv, os.environ)
    from kube.api import ApiError, KubeconfigError
    from scheduler_plugin.kubectl_main import NotThereError, run_view

    try:
        asyncio.run(run_view(settings))
    except (ApiError, KubeconfigError, NotThereError) as error:
        sys.stderr.write(f"kubectl moorage {settings.view}: {error}\n")
        return 1 if isinstance(error, NotThereError) else 2
    return 0
