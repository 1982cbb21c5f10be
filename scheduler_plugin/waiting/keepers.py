"""Creates the gate keeper of one cluster."""

from __future__ import annotations

from functools import partial

from scheduler_plugin.accounting.world import World
from scheduler_plugin.reclaiming.places.accepted_devices import AcceptedDevices
from scheduler_plugin.reclaiming.places.device_counts import too_few_for
from scheduler_plugin.reclaiming.places.stock import Stock
from scheduler_plugin.waiting.gates import GateKeeper
from scheduler_plugin.waiting.lines.refused_pods import RefusedPods
from scheduler_plugin.waiting.turns.aging import FIRST_TURN


def gate_keeper(world: World, stock: Stock, refusals: RefusedPods) -> GateKeeper:
    """Create a keeper that has decided nothing.

    Args:
        world: The known objects.
        stock: Nodes and devices: a gang that needs more devices than are free waits.
        refusals: The pods without a gate that Filter or Bind refused.
    """
    too_few = partial(too_few_for, world=world, accepted=AcceptedDevices(stock))
    return GateKeeper(world, refusals, first_turn=FIRST_TURN, too_few=too_few)
