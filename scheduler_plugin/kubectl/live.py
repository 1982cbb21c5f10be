"""`kubectl moorage` of a cluster: reads it once, and prints; `top` follows it."""

from __future__ import annotations

import asyncio
import contextlib
import io
import logging
import sys
from collections.abc import Collection, Sequence
from dataclasses import replace

from kube.api import (
    CLAIMS,
    CONFIGURATIONS,
    DEPLOYMENTS,
    PODS,
    QUEUES,
    ApiClient,
    ApiError,
    ForbiddenError,
    JsonObject,
    KubeconfigError,
    NotFoundError,
    connect,
    wall_clock,
)
from scheduler_plugin.arguments import parse_settings
from scheduler_plugin.asking.apiserver_pods import events_of, read_pod
from scheduler_plugin.asking.apiserver_snapshots import NoQueuesError, SnapshotReader
from scheduler_plugin.asking.kubectl_views import (
    CannotTellError,
    NotThereError,
    no_pod,
    pod_in,
    shown_why,
    taken_at,
    view,
    why_of,
)
from scheduler_plugin.asking.release_words import plugin_image, plugin_words
from scheduler_plugin.asking.shown import Key, Shown
from scheduler_plugin.asking.snapshots import Snapshot, world_of
from scheduler_plugin.asking.told_pods import gone, not_accounted, told_why
from scheduler_plugin.asking.versions import Versions, shown_versions
from scheduler_plugin.asking.view_settings import Reading, ViewSettings
from scheduler_plugin.kubectl.printing import note, progress, show, write
from scheduler_plugin.settings import ServeSettings

NAMESPACED = frozenset({"claims", "why", "simulate"})
"""Views of the current namespace, unless they are told another or all."""

_LABELLED = {"queues": QUEUES, "claims": CLAIMS, "handlers": CONFIGURATIONS}
DEPLOYMENT = "moorage-scheduler"


def run_live(settings: ViewSettings) -> None:
    """Read, and print one view.

    Raises:
        NotThereError: If there is no such object, or no Moorage.
        CannotTellError: If something that is needed cannot be read.
    """
    logging.disable(logging.WARNING)  # What cannot be read is said once, at the end.
    try:
        asyncio.run(_run(settings))
    except NoQueuesError as error:
        raise NotThereError(str(error)) from None
    except (ApiError, KubeconfigError) as error:
        raise CannotTellError(str(error)) from None


async def _run(settings: ViewSettings) -> None:
    reading = settings.reading
    async with connect(reading.kubeconfig, context=reading.context) as client:
        settings = _in_namespace(settings, client)
        if settings.view == "version":
            await _version(client, reading)
            return
        told = await _told(client, reading)
        if settings.view == "top":
            await _top(client, told, settings)
        elif settings.view == "snapshot":
            write(await _read(client, told), settings.file)
        elif settings.view == "why":
            show(await _why(client, told, settings), reading)
        else:
            labelled = await _labelled(client, settings)
            show(view(settings, await _read(client, told), labelled), reading)


def _in_namespace(settings: ViewSettings, client: ApiClient) -> ViewSettings:
    if settings.all_namespaces:
        return replace(settings, namespace="")
    if settings.view in NAMESPACED and not settings.namespace:
        return replace(settings, namespace=client.namespace)
    return settings


# Reading.


async def _told(client: ApiClient, reading: Reading) -> ServeSettings:
    """What the plugin was told, so that this sees what it sees; else its defaults."""
    words: tuple[str, ...] = ()
    try:
        path = DEPLOYMENTS.at(DEPLOYMENT, reading.release_namespace)
        words = plugin_words(await client.get(path))
    except NotFoundError:
        pass  # The plugin runs beside the cluster's own kube-scheduler, or elsewhere.
    except ForbiddenError as error:
        note(f"the settings of the release are not read, the defaults count: {error}")
    return plugin_settings(words)


def plugin_settings(words: Sequence[str]) -> ServeSettings:
    """What these words tell a plugin.

    Raises:
        CannotTellError: This version does not understand what another was told.
    """
    said = io.StringIO()
    try:
        with contextlib.redirect_stderr(said):
            found = parse_settings(["serve", *words], {})
    except SystemExit:
        why_not = said.getvalue().strip().splitlines()[-1:] or [" ".join(words)]
        raise CannotTellError(
            f"the release was told what this version does not understand: {why_not[0]}"
        ) from None
    assert isinstance(found, ServeSettings), "the command is serve"
    return found


async def _read(client: ApiClient, told: ServeSettings) -> Snapshot:
    with progress() as tell:
        reader = SnapshotReader(client, told.accounting, told.pod_groups, tell)
        snapshot = await reader.read(wall_clock())
    for sentence in snapshot.notes:
        note(sentence)
    return snapshot


async def _labelled(client: ApiClient, settings: ViewSettings) -> Collection[Key] | None:
    """The objects that the selector selects; a snapshot keeps no labels. None without one."""
    if not settings.selector:
        return None
    resource = _LABELLED[settings.view]
    namespace = settings.namespace if resource.namespaced else ""
    found = await client.list(resource.select(namespace, label_selector=settings.selector))
    return {(o["metadata"].get("namespace") or "", o["metadata"]["name"]) for o in found.items}


# Why.


async def _why(client: ApiClient, told: ServeSettings, settings: ViewSettings) -> Shown:
    try:
        snapshot = await _read(client, told)
    except ForbiddenError:
        return await _why_partly(client, told, settings)
    found = why_of(settings, snapshot, world_of(snapshot))
    if found is None:
        return await _why_unaccounted(client, settings)
    pod = pod_in(snapshot, settings)
    return shown_why(found, taken_at(snapshot), await events_of(client, settings, pod))


async def _why_unaccounted(client: ApiClient, settings: ViewSettings) -> Shown:
    """A pod that queues have nothing to do with, or one that is gone."""
    pod = await _pod(client, settings)
    events = await events_of(client, settings, pod)
    if pod is None and not events:
        raise NotThereError(no_pod(settings))
    name = f"{settings.namespace}/{settings.name}"
    return shown_why(gone(name) if pod is None else not_accounted(name), wall_clock(), events)


async def _pod(client: ApiClient, settings: ViewSettings) -> JsonObject | None:
    try:
        return await client.get(PODS.at(settings.name, settings.namespace))
    except NotFoundError:
        return None


async def _why_partly(client: ApiClient, told: ServeSettings, settings: ViewSettings) -> Shown:
    """What the plugin told the pod, where not all may be read that it judges by."""
    pod = await _pod(client, settings)
    if pod is None:
        return await _why_unaccounted(client, settings)
    read = await read_pod(client, pod)
    found = told_why(pod, read.claims, told.accounting)
    events = await events_of(client, settings, pod)
    return shown_why(found, wall_clock(), events, read.not_read)


# Version and top.


async def _version(client: ApiClient, reading: Reading) -> None:
    """Raises NotThereError where there is no release, once the client's version is printed."""
    server = (await client.server()).git_version
    namespace = reading.release_namespace
    try:
        image = plugin_image(await client.get(DEPLOYMENTS.at(DEPLOYMENT, namespace)))
    except (NotFoundError, ForbiddenError) as error:
        show(shown_versions(Versions.of_client(kubernetes=server)), reading)
        where = f"Deployment {namespace}/{DEPLOYMENT}"
        if isinstance(error, ForbiddenError):
            raise CannotTellError(f"the server's version is that of {where}: {error}") from None
        raise NotThereError(
            f"there is no {where}: --release-namespace says where the release is."
        ) from None
    show(shown_versions(Versions.of_client(kubernetes=server, image=image)), reading)


async def _top(client: ApiClient, told: ServeSettings, settings: ViewSettings) -> None:
    if settings.reading.output in ("json", "yaml") or not sys.stdout.isatty():
        once = replace(settings, view="queues")
        show(view(once, await _read(client, told)), settings.reading)
        return
    from scheduler_plugin.asking.apiserver_top import show_live

    await show_live(client, told, settings.every_seconds)
