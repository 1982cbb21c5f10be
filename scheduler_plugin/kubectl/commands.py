"""`kubectl moorage`: devices and their users, queues and their charges, and why a pod waits.

kubectl moorage queues                 the tree of queues, with usage against quota and limit
kubectl moorage claims                 accounted claims: charged queue, devices and pods
kubectl moorage charge QUEUE           charges of a queue, and claims of others that its pods use
kubectl moorage devices                nodes, state and users of each device
kubectl moorage handlers               discovery handlers by Configuration and node
kubectl moorage why POD                the verdict on a pod, and what would have to change
kubectl moorage simulate               the decisions after a change
kubectl moorage import FILE...         Queues that say what queues of KAI and Kueue do
kubectl moorage snapshot FILE          all that decisions depend on, as a file without secrets
kubectl moorage version                versions of this command, the release and the cluster

It reads with your kubeconfig, changes nothing, and judges by the rules of the plugin.
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
from scheduler_plugin.kubectl.import_settings import ImportSettings, device_class_of
from scheduler_plugin.kubectl.options import (
    RELEASE,
    AllNamespaces,
    Context,
    DeviceClasses,
    File,
    ForeignFiles,
    GPUClass,
    IgnoredAllNamespaces,
    IgnoredNamespace,
    Kubeconfig,
    Manifests,
    Names,
    Namespace,
    OtherNamespace,
    OutputFormat,
    Queues,
    Release,
    Selector,
    Strict,
)

app = commands(
    "kubectl moorage",
    "Show devices and their users, queues and their charges, and why a pod waits.",
    "Flags may stand before or after the command. The environment may set each flag, too:"
    " MOORAGE_RELEASE_NAMESPACE sets --release-namespace.",
)


@app.command(help="Show the tree of queues, with usage against quota and limit.")
def queues(
    names: Names = None,
    selector: Selector = "",
    namespace: IgnoredNamespace = "",
    all_namespaces: IgnoredAllNamespaces = False,
    kubeconfig: Kubeconfig = None,
    context: Context = "",
    release_namespace: Release = RELEASE,
    output: OutputFormat = "table",
    snapshot: File = None,
) -> ViewSettings:
    reading = Reading(kubeconfig, context, release_namespace, output, snapshot)
    return _chosen(ViewSettings(view="queues", reading=reading, selector=selector), names)


@app.command(help="Show accounted claims: the queue that is charged, the devices, and the pods.")
def claims(
    names: Names = None,
    namespace: Namespace = "",
    all_namespaces: AllNamespaces = False,
    selector: Selector = "",
    kubeconfig: Kubeconfig = None,
    context: Context = "",
    release_namespace: Release = RELEASE,
    output: OutputFormat = "table",
    snapshot: File = None,
) -> ViewSettings:
    reading = Reading(kubeconfig, context, release_namespace, output, snapshot)
    where = ViewSettings(view="claims", reading=reading, selector=selector, namespace=namespace)
    return _chosen(_everywhere(where, all_namespaces), names)


@app.command(help="Show what a queue is charged for, and what it uses while others are charged.")
def charge(
    queue: Annotated[str, typer.Argument(metavar="QUEUE")],
    namespace: IgnoredNamespace = "",
    all_namespaces: IgnoredAllNamespaces = False,
    kubeconfig: Kubeconfig = None,
    context: Context = "",
    release_namespace: Release = RELEASE,
    output: OutputFormat = "table",
    snapshot: File = None,
) -> ViewSettings:
    reading = Reading(kubeconfig, context, release_namespace, output, snapshot)
    return ViewSettings(view="charge", reading=reading, name=queue)


@app.command(help="Show the nodes, the state and the users of each device.")
def devices(
    names: Names = None,
    namespace: IgnoredNamespace = "",
    all_namespaces: IgnoredAllNamespaces = False,
    kubeconfig: Kubeconfig = None,
    context: Context = "",
    release_namespace: Release = RELEASE,
    output: OutputFormat = "table",
    snapshot: File = None,
) -> ViewSettings:
    reading = Reading(kubeconfig, context, release_namespace, output, snapshot)
    return _chosen(ViewSettings(view="devices", reading=reading), names)


@app.command(help="Show the discovery handlers of each Configuration and node, and their state.")
def handlers(
    namespace: OtherNamespace = "",
    all_namespaces: AllNamespaces = False,
    selector: Selector = "",
    kubeconfig: Kubeconfig = None,
    context: Context = "",
    release_namespace: Release = RELEASE,
    output: OutputFormat = "table",
    snapshot: File = None,
) -> ViewSettings:
    reading = Reading(kubeconfig, context, release_namespace, output, snapshot)
    where = ViewSettings(view="handlers", reading=reading, selector=selector, namespace=namespace)
    return _chosen(_everywhere(where, all_namespaces), None)


def _everywhere(settings: ViewSettings, all_namespaces: bool) -> ViewSettings:
    """The settings with all namespaces if asked for; as with kubectl, `-A` wins over `-n`."""
    return replace(settings, namespace="", all_namespaces=True) if all_namespaces else settings


def _chosen(settings: ViewSettings, names: Sequence[str] | None) -> ViewSettings:
    """The settings with names; exits with a sentence if flags exclude each other."""
    if names and settings.selector:
        raise refuse("names and --selector exclude each other: give only one of them.")
    if names and settings.all_namespaces:
        raise refuse(
            "names and --all-namespaces exclude each other: give --namespace in place of"
            " --all-namespaces."
        )
    if settings.selector and settings.reading.snapshot:
        raise refuse(
            "--selector and --snapshot exclude each other: a snapshot keeps no labels. Give names,"
            " or omit --snapshot."
        )
    return replace(settings, names=tuple(dict.fromkeys(names or ())))


@app.command(help="Say why a pod runs or waits, and what would have to change.")
def why(
    pod: Annotated[str, typer.Argument(metavar="POD")],
    namespace: Namespace = "",
    all_namespaces: IgnoredAllNamespaces = False,
    kubeconfig: Kubeconfig = None,
    context: Context = "",
    release_namespace: Release = RELEASE,
    output: OutputFormat = "table",
    snapshot: File = None,
) -> ViewSettings:
    reading = Reading(kubeconfig, context, release_namespace, output, snapshot)
    found = ViewSettings(
        view="why", reading=reading, namespace=namespace, all_namespaces=all_namespaces
    )
    return replace(_chosen(found, [pod]), name=pod, names=())


@app.command(help="Say what would change with new pods, changed Queues or without a device.")
def simulate(
    pod: Manifests = None,
    queue: Queues = None,
    without_device: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME",
            help="Name a device or an Instance that the simulation removes (default: none).",
        ),
    ] = None,
    namespace: Namespace = "",
    kubeconfig: Kubeconfig = None,
    context: Context = "",
    release_namespace: Release = RELEASE,
    output: OutputFormat = "table",
    snapshot: File = None,
) -> ViewSettings:
    if not (pod or queue or without_device):
        raise refuse("nothing to simulate: give --pod, --queue or --without-device.")
    return ViewSettings(
        view="simulate",
        reading=Reading(kubeconfig, context, release_namespace, output, snapshot),
        namespace=namespace,
        pods=tuple(pod or ()),
        queues=tuple(queue or ()),
        without_devices=tuple(without_device or ()),
    )


@app.command("import", help="Print Queues that say what queues of KAI and Kueue do.")
def import_(
    files: ForeignFiles,
    gpu_class: GPUClass = "",
    device_class: DeviceClasses = None,
    strict: Strict = False,
) -> ImportSettings:
    named = [device_class_of(text) for text in device_class or ()]
    return ImportSettings(tuple(files), gpu_class, dict(named), strict)


@app.command(help="Write all that decisions depend on to a file; - prints it.")
def snapshot(
    file: Annotated[str, typer.Argument(metavar="FILE")],
    namespace: IgnoredNamespace = "",
    all_namespaces: IgnoredAllNamespaces = False,
    kubeconfig: Kubeconfig = None,
    context: Context = "",
    release_namespace: Release = RELEASE,
) -> ViewSettings:
    reading = Reading(kubeconfig, context, release_namespace, "json")
    return ViewSettings(view="snapshot", reading=reading, file=file)


@app.command(hidden=True, help="Deprecated until version 0.3: run watch kubectl moorage queues.")
def top(
    namespace: IgnoredNamespace = "",
    all_namespaces: IgnoredAllNamespaces = False,
    kubeconfig: Kubeconfig = None,
    context: Context = "",
    release_namespace: Release = RELEASE,
    output: OutputFormat = "table",
) -> ViewSettings:
    reading = Reading(kubeconfig, context, release_namespace, output)
    typer.echo("`top` is gone in version 0.3: run `watch kubectl moorage queues`.", err=True)
    return ViewSettings(view="queues", reading=reading)


@app.command(help="Show the versions of this command, of the release, and of the cluster.")
def version(
    client: Annotated[
        bool,
        typer.Option(
            "--client",
            help="Show only the version of this command, without a cluster (default: all).",
        ),
    ] = False,
    namespace: IgnoredNamespace = "",
    all_namespaces: IgnoredAllNamespaces = False,
    kubeconfig: Kubeconfig = None,
    context: Context = "",
    release_namespace: Release = RELEASE,
    output: OutputFormat = "table",
) -> ViewSettings:
    reading = Reading(kubeconfig, context, release_namespace, output)
    return ViewSettings(view="version", reading=reading, only_client=client)


def main(argv: Sequence[str] | None = None) -> int:
    """Run a command; returns 1 if a named object does not exist, 2 if it cannot be read.

    `import` has a status of its own for what cannot be said, see `kubectl.importing`.
    """
    words = command_first(command_of(app), sys.argv[1:] if argv is None else argv)
    settings: ViewSettings | ImportSettings = settings_of(app, words, os.environ)
    # Imported here, since `--help` and wrong flags do not need it.
    if isinstance(settings, ImportSettings):
        from scheduler_plugin.kubectl.importing import run_import

        return run_import(settings)
    from scheduler_plugin.asking.view_errors import CannotAnswerError, NotThereError
    from scheduler_plugin.kubectl.main import run_view

    try:
        run_view(settings)
    except (NotThereError, CannotAnswerError) as error:
        sys.stderr.write(f"kubectl moorage {settings.view}: {error}\n")
        return 1 if isinstance(error, NotThereError) else 2
    except KeyboardInterrupt:
        return 130
    return 0
