"""Slots of a node's device plugin that are held: on their node, and no more of them."""

from __future__ import annotations

from typing import Any

from scheduler_plugin.judging.verdicts import Admitted, judge
from scheduler_plugin.objects.amounts import ResourceKey
from scheduler_plugin.objects.devices.devices import InstanceView
from scheduler_plugin.reclaiming.cycles import Cycle
from scheduler_plugin.reclaiming.due_targets import is_due
from scheduler_plugin.reclaiming.held_devices import HeldDevices
from scheduler_plugin.reclaiming.targets import Targets
from scheduler_plugin.reclaiming.victims.victims import NONE_EXCLUDED
from tests.scheduler_plugin.builders import (
    NOW,
    a_pod,
    a_pod_object,
    a_queue,
    a_world,
    pod_uid,
)
from tests.scheduler_plugin.reclaiming.devices_builders import (
    UNSCHEDULABLE,
    Cluster,
    a_node_object,
)
from tests.scheduler_plugin.reclaiming.test_devices import a_slot_user

SLOT: dict[str, Any] = {"akri.sh/onvif": "1"}
QUEUES = [
    a_queue("mine", onvif=(3, -1)),
    a_queue("robots", onvif=(0, -1)),
    a_queue("third", onvif=(5, -1)),
]
USED, FREE = ("n0", "n1", "n2"), "n3"


def a_line() -> Cluster:
    """Three nodes whose only slot robots use, and three pods that wait; a fourth node is free."""
    users = [a_slot_user(f"r-{node}", "robots", node=node) for node in USED]
    heads = [a_pod(f"w{n}", queue="mine", requests=SLOT, status=UNSCHEDULABLE) for n in range(3)]
    third = a_pod("t", queue="third", requests=SLOT, status=UNSCHEDULABLE)
    world = a_world(*QUEUES, *users, *heads, third)
    world.put_configuration(ResourceKey("onvif"))
    for node in (*USED, FREE):
        world.put_instance(InstanceView(f"of-{node}", ResourceKey("onvif"), (node,), 1))
    cluster = Cluster(world)
    cluster.nodes = {node: a_node_object(node, allocatable=SLOT) for node in (*USED, FREE)}
    cluster.nodes[FREE]["spec"] = {"unschedulable": True}
    cluster.pods = {node: [a_pod_object(f"r-{node}", node=node, requests=SLOT)] for node in USED}
    return cluster


def test_a_whole_line_is_carried_out_in_one_cycle_and_another_node_stays_free_for_all() -> None:
    cluster = a_line()
    world = cluster.world
    cycle = Cycle(world, NOW, NONE_EXCLUDED, cluster.placements(NONE_EXCLUDED))
    pods = [world.facts.pod(pod_uid(f"w{number}")) for number in range(3)]
    takes = [cycle.serve(pod) for pod in pods if pod is not None]

    for take in takes:
        assert isinstance(take, Targets)
        assert is_due(take, world, NOW, NONE_EXCLUDED, cycle.queue_shares)
        for hold in take.holds:
            assert hold.resources == (("akri.sh/onvif", 1),)
            assert not hold.is_of_any
            world.hold(hold)

    cluster.nodes[FREE]["spec"] = {}
    other = world.facts.pod(pod_uid("t"))
    assert other is not None
    assert isinstance(judge(other, (), world), Admitted)
    inventory = cluster.inventory()
    for node in USED:
        inventory.nodes.delete_pod(pod_uid(f"r-{node}"))
    assert sorted(HeldDevices(world, inventory).kept_off(other)) == sorted(USED)
