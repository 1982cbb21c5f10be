"""Ten thousand devices of one node, from what a handler says to the slices."""

from __future__ import annotations

from driver.api import DRIVER_NAME
from driver.instances.inventory import Heard, inventory_of
from driver.instances.names import TakenNames
from driver.publishing.apply.pools import DesiredPool, PoolPlan, plan_pool
from driver.publishing.apply.resource_slices import NodeScope
from driver.publishing.apply.shards import DeviceGroup
from driver.publishing.apply.slice_writes import CreateSlice, Owner
from driver.publishing.desired.next_publication import publish
from driver.publishing.desired.publication import Publication, local_supply
from driver.publishing.desired.slices import Features
from tests.driver.builders import NODE, NOW, a_device
from tests.driver.instances.test_inventory import a_verdict

MANY = 10_000
FEATURES = Features(consumable_capacity=True, taints=True)


def test_each_of_ten_thousand_devices_is_published_under_a_name_of_its_own() -> None:
    camera = a_verdict("camera")
    devices = tuple(a_device(f"/devices/{number:05}", device_specs=()) for number in range(MANY))

    inventory = inventory_of(
        [camera], {camera.name: Heard(camera.uid, devices)}, NODE, lambda _: TakenNames(digits=12)
    )
    offered = publish(
        local_supply(inventory), Publication({}), FEATURES, allocated=frozenset(), now=NOW
    )
    group = DeviceGroup(NodeScope(NODE), tuple(o.device for o in offered.offers.values()))
    owner = Owner("v1", "Node", NODE, "uid")
    desired = DesiredPool(name=NODE, driver=DRIVER_NAME, groups=(group,), owner=owner)
    plan = plan_pool(desired, ())

    assert inventory.collisions == {}, "of so many some would collide by Akri's hash"
    assert len({instance.name for instance in inventory.instances}) == MANY
    assert isinstance(plan, PoolPlan)
    names = [
        device["name"]
        for write in plan.writes
        if isinstance(write, CreateSlice)
        for device in write.body["spec"]["devices"]
    ]
    assert len(set(names)) == len(names) == MANY
