"""The world of a snapshot, which verdicts are made of."""

from __future__ import annotations

from scheduler_plugin.accounting.world import World
from scheduler_plugin.asking.books import fill
from scheduler_plugin.asking.snapshots import Snapshot


def world_of(snapshot: Snapshot) -> World:
    """The world that follows, as the plugin has it; an object that cannot be read is absent."""
    world = World(snapshot.settings)
    fill(world, snapshot)
    return world
