"""The world of a snapshot, from which verdicts are made."""

from __future__ import annotations

from scheduler_plugin.accounting.world import World
from scheduler_plugin.asking.books import close, fill
from scheduler_plugin.asking.snapshots import Snapshot


def world_of(snapshot: Snapshot) -> World:
    """The world of a snapshot, as the plugin has it; an unreadable object counts as absent."""
    world = World(snapshot.settings)
    fill(world, snapshot)
    close(world)
    return world
