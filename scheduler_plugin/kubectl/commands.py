"""`kubectl moorage`: who has which device, who pays, and why a pod waits.

kubectl moorage queues                 the tree, with usage against quota and limit
kubectl moorage claims                 each accounted claim: who pays, its devices, who uses it
kubectl moorage charge QUEUE           what a queue pays for, and what it uses on others' account
kubectl moorage devices                where each device is, its state, and who uses its slots
kubectl moorage handlers               who discovers what on which node, and whether it does
kubectl moorage why POD                the verdict on a pod, and what would have to change
kubectl moorage simulate               what would be decided if something were different
kubectl moorage snapshot FILE          what the decisions rest on, as a file without secrets
kubectl moorage version                of this command, of the release, and of the cluster

It reads with your kubeconfig and changes nothing; what it says is what the plugin decides by.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from dataclasses import replace
from typing import Annotated

import typer

from kube.command_settings import command_of, commands, refuse, settings_of
from scheduler_plugin.asking.view_settings import Reading, ViewSettings
from scheduler_plugin.kubectl.flag_order import command_first
from scheduler_plugin.kubectl.options import (
    RELEASE,
    AllNamespaces,
    Context,
    File,
    Kubeconfig,
    Manifests,
    Names,
    Namespace,
    OtherNamespace,
    Queues,
    Release,
    Selector,
    Told,
    Unheard,
    UnheardAll,
)

app = commands(
    "kubectl moorage",
    "Who has which device, who pays for it, and why a pod waits.",
    "Flags may stand before the command or behind it. Each may be given in the environment, too:"
    " --release-namespace is MOORAGE_RELEASE_NAMESPACE.",
)


@app.command(help="The tree of queues, with usage against quota and limit.")
def queues(
    names: Names = None,
    selector: Selector = "",
    namespace: Unheard = "",
    all_namespaces: UnheardAll = False,
    kubeconfig: Kubeconfig = None,
    context: Context = "",
    release_namespace: Release = RELEASE,
    output: Told = "table",
    snapshot: File = None,
) -> ViewSettings:
    reading = Reading(kubeconfig, context, release_namespace, output, snapshot)
    return _chosen(ViewSettings(view="queues", reading=reading, selector=selector), names)


@app.command(help="Accounted claims: who pays for each, which devices it has, and who uses it.")
def claims(
    names: Names = None,
    namespace: Namespace = "",
    all_namespaces: AllNamespaces = False,
    selector: Selector = "",
    kubeconfig: Kubeconfig = None,
    context: Context = "",
    release_namespace: Release = RELEASE,
    output: Told = "table",
    snapshot: File = None,
) -> ViewSettings:
    reading = Reading(kubeconfig, context, release_namespace, output, snapshot)
    where = ViewSettings(view="claims", reading=reading, selector=selector, namespace=namespace)
    return _chosen(_everywhere(where, all_namespaces), names)


@app.command(help="What a queue pays for, and what it uses for free.")
def charge(
    queue: Annotated[str, typer.Argument(metavar="QUEUE")],
    namespace: Unheard = "",
    all_namespaces: UnheardAll = False,
    kubeconfig: Kubeconfig = None,
    context: Context = "",
    release_namespace: Release = RELEASE,
    output: Told = "table",
    snapshot: File = None,
) -> ViewSettings:
    reading = Reading(kubeconfig, context, release_namespace, output, snapshot)
    return ViewSettings(view="charge", reading=reading, name=queue)


@app.command(help="Where each device is, its state, and who uses its slots.")
def devices(
    names: Names = None,
    namespace: Unheard = "",
    all_namespaces: UnheardAll = False,
    kubeconfig: Kubeconfig = None,
    context: Context = "",
    release_namespace: Release = RELEASE,
    output: Told = "table",
    snapshot: File = None,
) -> ViewSettings:
    reading = Reading(kubeconfig, context, release_namespace, output, snapshot)
    return _chosen(ViewSettings(view="devices", reading=reading), names)


@app.command(help="Who discovers what on which node, and whether it does.")
def handlers(
    namespace: OtherNamespace = "",
    all_namespaces: AllNamespaces = False,
    selector: Selector = "",
    kubeconfig: Kubeconfig = None,
    context: Context = "",
    release_namespace: Release = RELEASE,
    output: Told = "table",
    snapshot: File = None,
) -> ViewSettings:
    reading = Reading(kubeconfig, context, release_namespace, output, snapshot)
    where = ViewSettings(view="handlers", reading=reading, selector=selector, namespace=namespace)
    return _chosen(_everywhere(where, all_namespaces), None)


def _everywhere(settings: ViewSettings, all_namespaces: bool) -> ViewSettings:
    """As with kubectl, `-A` wins over `-n`."""
    return replace(settings, namespace="", all_namespaces=True) if all_namespaces else settings


def _chosen(settings: ViewSettings, names: Sequence[str] | None) -> ViewSettings:
    """Exits with a sentence where these flags make no sense together."""
    if names and settings.selector:
        raise refuse("names and --selector exclude each other: give one of them.")
    if names and settings.all_namespaces:
        raise refuse(
            "a name is that of an object in one namespace: give --namespace in place of"
            " --all-namespaces."
        )
    if settings.selector and settings.reading.snapshot:
        raise refuse("--selector: a snapshot keeps no labels. Select by names, or ask the cluster.")
    return replace(settings, names=tuple(dict.fromkeys(names or ())))


@app.command(help="Why a pod runs or waits, and what would help.")
def why(
    pod: Annotated[str, typer.Argument(metavar="POD")],
    namespace: Namespace = "",
    all_namespaces: UnheardAll = False,
    kubeconfig: Kubeconfig = None,
    context: Context = "",
    release_namespace: Release = RELEASE,
    output: Told = "table",
    snapshot: File = None,
) -> ViewSettings:
    reading = Reading(kubeconfig, context, release_namespace, output, snapshot)
    found = ViewSettings(
        view="why", reading=reading, namespace=namespace, all_namespaces=all_namespaces
    )
    return replace(_chosen(found, [pod]), name=pod, names=())


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
        raise refuse("nothing is different: give --pod, --queue or --without-device.")
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
    namespace: Unheard = "",
    all_namespaces: UnheardAll = False,
    kubeconfig: Kubeconfig = None,
    context: Context = "",
    release_namespace: Release = RELEASE,
) -> ViewSettings:
    reading = Reading(kubeconfig, context, release_namespace, "json")
    return ViewSettings(view="snapshot", reading=reading, file=file)


@app.command(hidden=True, help="Deprecated until version 0.3: run watch kubectl moorage queues.")
def top(
    namespace: Unheard = "",
    all_namespaces: UnheardAll = False,
    kubeconfig: Kubeconfig = None,
    context: Context = "",
    release_namespace: Release = RELEASE,
    output: Told = "table",
) -> ViewSettings:
    reading = Reading(kubeconfig, context, release_namespace, output)
    typer.echo("`top` is gone in version 0.3: run `watch kubectl moorage queues`.", err=True)
    return ViewSettings(view="queues", reading=reading)


@app.command(help="Versions of this command, of the release, and of the cluster.")
def version(
    client: Annotated[
        bool, typer.Option("--client", help="Of this command alone, without a cluster.")
    ] = False,
    namespace: Unheard = "",
    all_namespaces: UnheardAll = False,
    kubeconfig: Kubeconfig = None,
    context: Context = "",
    release_namespace: Release = RELEASE,
    output: Told = "table",
) -> ViewSettings:
    reading = Reading(kubeconfig, context, release_namespace, output)
    return ViewSettings(view="version", reading=reading, only_client=client)


def main(argv: Sequence[str] | None = None) -> int:
    """Print what is asked for; 1 where there is no such thing, 2 where it cannot be told."""
    words = command_first(command_of(app), sys.argv[1:] if argv is None else argv)
    settings: ViewSettings = settings_of(app, words, os.environ)
    # Not before: `--help` and a flag that makes no sense need none of it.
    from scheduler_plugin.asking.view_errors import CannotTellError, NotThereError
    from scheduler_plugin.kubectl.main import run_view

    try:
        run_view(settings)
    except (NotThereError, CannotTellError) as error:
        sys.stderr.write(f"kubectl moorage {settings.view}: {error}\n")
        return 1 if isinstance(error, NotThereError) else 2
    except KeyboardInterrupt:
        return 130
    return 0
