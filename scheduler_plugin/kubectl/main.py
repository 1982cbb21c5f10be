"""Runs `kubectl moorage`: reads the cluster once, or a snapshot of it, and prints."""

from __future__ import annotations

import contextlib
import io
import json
import logging
import os
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from importlib.metadata import version
from pathlib import Path
from typing import Any

import yaml
from rich.console import Console

from kube.api import (
    DEPLOYMENTS,
    EVENTS,
    PODS,
    ApiClient,
    ApiError,
    ForbiddenError,
    JsonObject,
    NotFoundError,
    connect,
    wall_clock,
)
from scheduler_plugin.arguments import parse_settings
from scheduler_plugin.asking.apiserver_snapshots import NoQueuesError, SnapshotReader
from scheduler_plugin.asking.apiserver_top import show_live
from scheduler_plugin.asking.kubectl_views import (
    CannotTellError,
    NotThereError,
    Shown,
    no_pod,
    shown_why,
    view,
    why_of,
)
from scheduler_plugin.asking.release_words import plugin_words
from scheduler_plugin.asking.snapshots import (
    Snapshot,
    SnapshotError,
    document,
    read_document,
    world_of,
)
from scheduler_plugin.objects.names import NO_QUEUE
from scheduler_plugin.settings import Reading, ServeSettings, ViewSettings
from scheduler_plugin.viewing.why import Why

WIDEST = 10_000

NEWEST = 5
"""How many Events of a pod are told."""


async def run_view(settings: ViewSettings) -> None:
    """Read, and print one view.

    Raises:
        ApiError: If something that is needed cannot be read.
        NotThereError: If there is no such queue or pod, or no Moorage.
        CannotTellError: If a file makes no sense.
    """
    logging.disable(logging.WARNING)  # What cannot be read is said once, at the end.
    reading = settings.reading
    if reading.snapshot is not None:
        settings = replace(settings, namespace=settings.namespace or "default")
        _print(view(settings, _from_file(reading.snapshot)), reading)
        return
    async with connect(reading.kubeconfig, context=reading.context) as client:
        settings = replace(settings, namespace=settings.namespace or client.namespace)
        told = await _told(client, reading)
        if settings.view == "top":
            await _top(client, told, settings)
            return
        snapshot = await _read(client, told)
        for note in snapshot.notes:
            sys.stderr.write(f"kubectl moorage: {note}\n")
        if settings.view == "snapshot":
            _write(snapshot, settings.file)
        else:
            _print(await _live_view(client, settings, snapshot), reading)


# Reading.


async def _told(client: ApiClient, reading: Reading) -> ServeSettings:
    """What the plugin was told, so that this sees what it sees; else its defaults."""
    words: tuple[str, ...] = ()
    try:
        path = DEPLOYMENTS.at("moorage-scheduler", reading.release_namespace)
        words = plugin_words(await client.get(path))
    except NotFoundError:
        pass  # The plugin runs beside the cluster's own kube-scheduler, or elsewhere.
    except ForbiddenError as error:
        _note(f"the settings of the release are not read, the defaults count: {error}")
    return _parsed(words)


def _parsed(words: Sequence[str]) -> ServeSettings:
    """Raises CannotTellError where this version does not understand what another was told."""
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


def _note(sentence: str) -> None:
    sys.stderr.write(f"kubectl moorage: {sentence}\n")


async def _read(client: ApiClient, told: ServeSettings) -> Snapshot:
    with _progress() as tell:
        reader = SnapshotReader(client, told.accounting, told.pod_groups, tell)
        try:
            return await reader.read(wall_clock())
        except NoQueuesError as error:
            raise NotThereError(str(error)) from None


@contextmanager
def _progress() -> Iterator[Any]:
    """Tell on a terminal how far reading is; elsewhere nobody wants to know."""
    if not sys.stderr.isatty():
        yield lambda kind, count: None
        return
    console = Console(stderr=True)
    with console.status("reading ...") as status:
        yield lambda kind, count: status.update(f"reading {kind} ({count}) ...")


def _from_file(path: Path) -> Snapshot:
    try:
        return read_document(json.loads(path.read_text(encoding="utf-8")))
    except (OSError, SnapshotError) as error:
        raise CannotTellError(f"{path}: {error}") from None
    except (ValueError, RecursionError) as error:
        raise CannotTellError(f"{path}: this is not JSON: {error}") from None


# Writing.


def _write(snapshot: Snapshot, file: str) -> None:
    text = json.dumps(document(snapshot, version("moorage")), indent=1) + "\n"
    if file == "-":
        sys.stdout.write(text)
        return
    path = Path(file)
    part = path.with_name(f"{path.name}.part")
    try:
        # It names everybody's pods and claims: it is for whoever asked.
        with open(os.open(part, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w") as out:
            out.write(text)
        part.replace(path)
    except OSError as error:
        raise CannotTellError(f"{path}: {error.strerror}") from None


def _print(shown: Shown, reading: Reading) -> None:
    plain, pretty = shown
    if reading.output == "json":
        sys.stdout.write(json.dumps(plain, indent=2) + "\n")
    elif reading.output == "yaml":
        sys.stdout.write(yaml.safe_dump(json.loads(json.dumps(plain)), sort_keys=False))
    else:
        # Where nobody looks, lines are as long as they are: whoever reads them cuts them himself.
        width = None if sys.stdout.isatty() else WIDEST
        console = Console(highlight=False, width=width)
        for part in pretty:
            console.print(part)


async def _live_view(client: ApiClient, settings: ViewSettings, snapshot: Snapshot) -> Shown:
    if settings.view != "why":
        return view(settings, snapshot)
    found = why_of(settings, snapshot, world_of(snapshot))
    events = await _told_of(client, settings.namespace, settings.name)
    if found is None:
        found = await _unaccounted(client, settings, events)
    found = replace(found, told=(*found.told, *events))
    return shown_why(found)


async def _unaccounted(client: ApiClient, settings: ViewSettings, events: tuple[str, ...]) -> Why:
    """A pod that queues have nothing to do with, or one that is gone."""
    pod = f"{settings.namespace}/{settings.name}"
    try:
        await client.get(PODS.at(settings.name, settings.namespace))
    except NotFoundError:
        if not events:
            raise NotThereError(no_pod(settings)) from None
        sentence = "It does not exist any more; what is left of it are Events."
        return Why(pod=pod, reason="Gone", sentence=sentence, queue=NO_QUEUE, claims=())
    sentence = "It asks for no devices, and no rule of queues looks at it."
    return Why(pod=pod, reason="NotAccounted", sentence=sentence, queue=NO_QUEUE, claims=())


async def _told_of(client: ApiClient, namespace: str, name: str) -> tuple[str, ...]:
    """The newest Events about pods of a name, the oldest first; none where they may not be read."""
    selected = EVENTS.select(namespace, field_selector=f"regarding.kind=Pod,regarding.name={name}")
    try:
        found = await client.list(selected)
    except ApiError:
        return ()
    newest = sorted(found.items, key=_when)[-NEWEST:]
    return tuple(
        f"{_when(event)} {event.get('reason')}: {event.get('note') or ''}" for event in newest
    )


def _when(event: JsonObject) -> str:
    series = (event.get("series") or {}).get("lastObservedTime")
    old = event.get("deprecatedLastTimestamp")
    created = event["metadata"].get("creationTimestamp")
    return str(series or event.get("eventTime") or old or created or "")


async def _top(client: ApiClient, told: ServeSettings, settings: ViewSettings) -> None:
    if settings.reading.output in ("json", "yaml") or not sys.stdout.isatty():
        once = replace(settings, view="queues")
        _print(view(once, await _read(client, told)), settings.reading)
        return
    await show_live(client, told, settings.every_seconds)
