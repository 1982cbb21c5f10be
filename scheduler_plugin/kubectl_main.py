"""Runs `kubectl moorage`: reads the cluster once, as the plugin does, and prints."""

from __future__ import annotations

import asyncio
import json
import logging
import sys
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import Any

import yaml
from rich.console import Console, RenderableType

from kube.api import ApiClient, ApiError, NotFoundError, Resource, connect
from scheduler_plugin.accounting.world import World
from scheduler_plugin.arguments import parse_settings
from scheduler_plugin.cluster.apiserver import QUEUES
from scheduler_plugin.cluster.stores import ClusterWorld
from scheduler_plugin.objects.names import QueueName
from scheduler_plugin.settings import ServeSettings, ViewSettings
from scheduler_plugin.viewing.queue_rows import charge_rows, claim_rows, queue_rows
from scheduler_plugin.viewing.tables import charge_table, objects, queue_table, why_text
from scheduler_plugin.viewing.why import why

DEPLOYMENTS = Resource("apps", "v1", "deployments")
READ_SECONDS = 30.0


class NotThereError(Exception):
    """Raised where what is asked about does not exist."""


async def run_view(settings: ViewSettings) -> None:
    """Read, and print one view.

    Raises:
        ApiError: If something that is needed cannot be read.
        NotThereError: If there is no such queue or pod, or no Moorage.
    """
    logging.disable(logging.WARNING)  # What cannot be read is said once, at the end.
    async with connect(settings.kubeconfig) as client:
        await _needs_queues(client)
        async with _world(client, await _told(client, settings)) as world:
            plain, pretty = _view(settings, world)
    if settings.output == "json":
        sys.stdout.write(json.dumps(plain, indent=2) + "\n")
    elif settings.output == "yaml":
        sys.stdout.write(yaml.safe_dump(plain, sort_keys=False))
    else:
        console = Console(highlight=False, soft_wrap=not sys.stdout.isatty())
        for part in pretty:
            console.print(part)


async def _needs_queues(client: ApiClient) -> None:
    """Raises where Moorage is not installed, or may not be read."""
    try:
        await client.current_version(QUEUES.select())
    except NotFoundError:
        raise NotThereError("this cluster has no Queues: Moorage is not installed") from None


async def _told(client: ApiClient, settings: ViewSettings) -> ServeSettings:
    """What the plugin was told, so that this sees what it sees; else its defaults."""
    words: Sequence[str] = ()
    try:
        path = DEPLOYMENTS.at("moorage-scheduler", settings.release_namespace)
        body = await client.get(path)
        containers = body["spec"]["template"]["spec"]["containers"]
        words = next(c["command"] for c in containers if c["name"] == "scheduler-plugin")[2:]
    except (ApiError, KeyError, StopIteration):
        pass
    found = parse_settings(["serve", *words], {})
    if not isinstance(found, ServeSettings):
        raise TypeError(f"{words} are no flags of serve")
    return found


@asynccontextmanager
async def _world(client: ApiClient, told: ServeSettings) -> AsyncIterator[World]:
    """The world as it is now."""
    cluster = ClusterWorld(client, told.accounting, pod_groups=told.pod_groups)
    task = asyncio.create_task(cluster.run())
    try:
        async with asyncio.timeout(READ_SECONDS):
            await cluster.in_sync()
        yield cluster.world
    except TimeoutError:
        raise NotThereError(cluster.why_not_ready()) from None
    finally:
        task.cancel()
        await asyncio.wait((task,))


def _view(settings: ViewSettings, world: World) -> tuple[Any, Sequence[RenderableType]]:
    """The same for programs, and for people."""
    match settings.view:
        case "queues":
            rows = tuple(queue_rows(world))
            return objects(rows), (queue_table(rows),)
        case "claims":
            claims = tuple(claim_rows(world))
            return objects(claims), (charge_table(claims),)
        case "charge":
            if QueueName(settings.name) not in world.facts.tree:
                raise NotThereError(f"there is no Queue {settings.name}")
            charges = tuple(charge_rows(world, QueueName(settings.name)))
            return objects(charges), (charge_table(charges),)
        case "why":
            found = why(world, settings.namespace, settings.name)
            if found is None:
                where = f"{settings.namespace}/{settings.name}"
                raise NotThereError(f"there is no pod {where} that asks for accounted devices")
            return objects((found,))[0], why_text(found)
