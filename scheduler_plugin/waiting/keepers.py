"""The keeper of the pods that wait in one cluster."""

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
    """One that has decided nothing yet.

    Args:
        world: What is known.
        stock: Nodes and devices: groups of pods that need more than there is wait.
        refusals: The pods without a gate that kube-scheduler was refused.
    """
    too_few = partial(too_few_for, world=world, accepted=AcceptedDevices(stock))
    return GateKeeper(world, refusals, first_turn=FIRST_TURN, too_few=too_few)
