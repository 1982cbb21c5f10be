"""`top`: queues and waiting pods as they are now, shown anew until it is stopped."""

from __future__ import annotations

import asyncio

from rich.live import Live
from rich.text import Text

from kube.api import ApiClient, ForbiddenError, Resource, wall_clock
from scheduler_plugin.accounting.world import World
from scheduler_plugin.accounting_arguments import ReleaseSettings
from scheduler_plugin.asking.apiserver_snapshots import NEEDED, OPTIONAL
from scheduler_plugin.asking.columns import BOLD, lines_of, styled
from scheduler_plugin.asking.tables import queue_table, waiting_table
from scheduler_plugin.cluster.stores import ClusterWorld
from scheduler_plugin.viewing.pod_rows import waiting_rows
from scheduler_plugin.viewing.queue_rows import queue_rows

PODS_SHOWN = 20


async def show_live(client: ApiClient, told: ReleaseSettings, every_seconds: float) -> None:
    """Show it until cancelled. Raises ApiError if something that is needed cannot be read."""
    for resource in (*NEEDED, *OPTIONAL):
        await client.serves(resource)
    groups = [one for one in told.pod_groups if await _may_be_read(client, one)]
    cluster = ClusterWorld(client, told.accounting, pod_groups=groups, follows_nodes=False)
    async with asyncio.TaskGroup() as tasks:
        running = tasks.create_task(cluster.run())
        try:
            await cluster.in_sync()
            with Live(_screen(cluster.world), screen=True, auto_refresh=False) as live:
                while True:
                    live.update(_screen(cluster.world), refresh=True)
                    await asyncio.sleep(every_seconds)
        finally:
            running.cancel()


async def _may_be_read(client: ApiClient, resource: Resource) -> bool:
    try:
        await client.serves(resource)
    except ForbiddenError:
        return False
    return True


def _screen(world: World) -> Text:
    """What there is now; of a line that is too long for the screen an ellipsis is the end."""
    now = wall_clock()
    rows = tuple(waiting_rows(world, PODS_SHOWN))
    head = styled(f"{now:%H:%M:%S}  {len(rows)} pods wait and are shown", BOLD)
    parts = (head, queue_table(tuple(queue_rows(world))), "", waiting_table(rows, now))
    lines = lines_of(parts, is_terminal=True)
    return Text("\n", no_wrap=True, overflow="ellipsis").join(map(Text.from_ansi, lines))
