"""Creates the gate keeper of one cluster."""

from __future__ import annotations

from functools import partial

from scheduler_plugin.accounting.world import World
from scheduler_plugin.reclaiming.placement.accepted_devices import AcceptedDevices
from scheduler_plugin.reclaiming.placement.device_counts import too_few_for
from scheduler_plugin.reclaiming.placement.inventory import Inventory
from scheduler_plugin.waiting.classes.refused_pods import RefusedPods
from scheduler_plugin.waiting.gates import GateKeeper
from scheduler_plugin.waiting.order.aging import FIRST_PERIOD


def gate_keeper(world: World, inventory: Inventory, refusals: RefusedPods) -> GateKeeper:
    """Create a keeper that has decided nothing.

    Args:
        world: The known objects.
        inventory: Nodes and devices: a gang that needs more devices than are free waits.
        refusals: The pods without a gate that Filter or Bind refused.
    """
    too_few = partial(too_few_for, world=world, accepted=AcceptedDevices(inventory))
    return GateKeeper(world, refusals, first_period=FIRST_PERIOD, too_few=too_few)
