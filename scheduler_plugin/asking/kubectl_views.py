"""What `kubectl moorage` shows: for each view the same for programs, and for people."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import yaml
from rich.console import RenderableType

from kube.api import wall_clock
from scheduler_plugin.accounting.figures.share_figures import ShareFigures
from scheduler_plugin.accounting.world import World
from scheduler_plugin.asking.shapes import TOLD_CONDITIONS
from scheduler_plugin.asking.simulations import Changes, NoChangeError, simulate
from scheduler_plugin.asking.snapshots import Snapshot, world_of
from scheduler_plugin.asking.tables import (
    charge_table,
    device_table,
    handler_table,
    objects,
    queue_table,
    simulation_text,
    why_text,
)
from scheduler_plugin.objects.fields import JsonObject
from scheduler_plugin.objects.names import QueueName
from scheduler_plugin.settings import ViewSettings
from scheduler_plugin.viewing.device_rows import device_rows
from scheduler_plugin.viewing.handler_rows import handler_rows
from scheduler_plugin.viewing.queue_rows import charge_rows, claim_rows, queue_rows
from scheduler_plugin.viewing.why import Why, why

Shown = tuple[Any, Sequence[RenderableType]]
"""The same for programs, and for people."""


class NotThereError(Exception):
    """Raised where what is asked about does not exist."""


class CannotTellError(Exception):
    """Raised where a file, or what the release was told, makes no sense to this version."""


def no_pod(settings: ViewSettings) -> str:
    """That there is none of that name."""
    where = f"{settings.namespace}/{settings.name}"
    return f"there is no pod {where}, and no Event tells of one."


def view(settings: ViewSettings, snapshot: Snapshot) -> Shown:
    """One view of a snapshot.

    Raises:
        NotThereError: If there is no such queue or pod.
        CannotTellError: If a manifest makes no sense.
    """
    found = _VIEWS.get(settings.view)
    if found is None:
        raise CannotTellError(f"a snapshot has no {settings.view}.")
    return found(settings, snapshot, world_of(snapshot))


def _queues(settings: ViewSettings, _: Snapshot, world: World) -> Shown:
    rows = tuple(queue_rows(world))
    figures = ShareFigures(world)
    shares = {
        (str(name), str(key)): amount
        for name in {row.queue for row in rows}
        for key, amount in figures.of(name, 0.0)
    }
    plain = objects(rows)
    for row in plain:
        row["share"] = shares.get((row["queue"], row["device_class"]), 0)
    wide = shares if settings.reading.output == "wide" else None
    return plain, (queue_table(rows, wide),)


def _claims(_: ViewSettings, __: Snapshot, world: World) -> Shown:
    rows = tuple(claim_rows(world))
    return objects(rows), (charge_table(rows),)


def _charge(settings: ViewSettings, _: Snapshot, world: World) -> Shown:
    if QueueName(settings.name) not in world.facts.tree:
        raise NotThereError(f"there is no Queue {settings.name}")
    rows = tuple(charge_rows(world, QueueName(settings.name)))
    return objects(rows), (charge_table(rows),)


def _devices(settings: ViewSettings, snapshot: Snapshot, world: World) -> Shown:
    rows = device_rows(
        snapshot.of("resourceslices"),
        snapshot.of("instances"),
        snapshot.of("resourceclaims"),
        world,
    )
    return objects(rows), (device_table(rows, wide=settings.reading.output == "wide"),)


def _handlers(_: ViewSettings, snapshot: Snapshot, __: World) -> Shown:
    rows = tuple(handler_rows(snapshot.of("configurations"), snapshot.driver_nodes))
    return objects(rows), (handler_table(rows),)


def _simulated(settings: ViewSettings, snapshot: Snapshot, _: World) -> Shown:
    changes = Changes(
        objects=_manifests(settings.pods),
        queues=_manifests(settings.queues),
        without_devices=settings.without_devices,
        namespace=settings.namespace,
    )
    try:
        found = simulate(snapshot, changes, wall_clock())
    except NoChangeError as error:
        raise CannotTellError(str(error)) from None
    return objects((found,))[0], simulation_text(found)


def _why(settings: ViewSettings, snapshot: Snapshot, world: World) -> Shown:
    found = why_of(settings, snapshot, world)
    if found is None:
        raise NotThereError(no_pod(settings))
    return shown_why(found)


def shown_why(found: Why) -> Shown:
    """What is to be said of a pod."""
    return objects((found,))[0], why_text(found)


def why_of(settings: ViewSettings, snapshot: Snapshot, world: World) -> Why | None:
    """With what the pod's conditions say; None where a snapshot has no such pod."""
    found = why(world, settings.namespace, settings.name, wall_clock())
    if found is None:
        return None
    key = (settings.namespace, settings.name)
    conditions = next(
        (
            (pod.get("status") or {}).get("conditions") or ()
            for pod in snapshot.of("pods")
            if (pod["metadata"].get("namespace"), pod["metadata"]["name"]) == key
        ),
        (),
    )
    told = (
        f"{c['type']} is {c.get('status')}, {c.get('reason')}: {c['message']}"
        for c in conditions
        if c.get("type") in TOLD_CONDITIONS and c.get("message")
    )
    return replace(found, told=tuple(told))


_VIEWS: Mapping[str, Callable[[ViewSettings, Snapshot, World], Shown]] = {
    "queues": _queues,
    "claims": _claims,
    "charge": _charge,
    "devices": _devices,
    "handlers": _handlers,
    "simulate": _simulated,
    "why": _why,
}


def _manifests(paths: Sequence[Path]) -> list[JsonObject]:
    found: list[JsonObject] = []
    for path in paths:
        try:
            documents = list(yaml.safe_load_all(path.read_text(encoding="utf-8")))
        except (OSError, ValueError, RecursionError, yaml.YAMLError) as error:
            raise CannotTellError(f"{path}: this is not YAML: {error}") from None
        for each in documents:
            if isinstance(each, Mapping):
                found += each["items"] if each.get("kind") == "List" else [each]
            elif each is not None:
                raise CannotTellError(f"{path}: an object is expected.")
    return found
