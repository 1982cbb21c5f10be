"""What a node decides when one device of a thousand comes or goes, in CPU time.

    python -m bench.one_change [--devices 1000] [--rounds 60]

The steps of a pass, from the devices to the plan of the pool and of the Instances; no API server.
In pairs with it, the same decisions about objects that nothing is known of, as all were once; the
baseline does nothing but write all devices as canonical JSON.
"""

from __future__ import annotations

import argparse
import json
import statistics
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import Any, TypeVar

from driver.api import Configuration, ConfigurationName, DeviceName, InstanceName, NodeName
from driver.derived import derived
from driver.devices import Device, DeviceSpec
from driver.instances.instances import Instance, instances_of
from driver.instances.inventory import Inventory
from driver.instances.local import Retention, plan_instances
from driver.instances.names import TakenNames
from driver.instances.stored.objects import StoredInstance, instance_body, stored_instance
from driver.publishing.apply.pools import DesiredPool, PoolPlan, plan_pool
from driver.publishing.apply.resource_slices import NodeScope, StoredSlice, stored_slice
from driver.publishing.apply.shards import DeviceGroup
from driver.publishing.desired.next_publication import publish
from driver.publishing.desired.publication import Publication, local_supply
from driver.publishing.desired.slices import Features

NODE = NodeName("node-a")
NOW = datetime(2026, 11, 21, tzinfo=UTC)
FEATURES = Features(consumable_capacity=True, taints=True)
CONFIGURATION = Configuration(
    name=ConfigurationName("plug"),
    namespace="default",
    uid="uid",
    generation=1,
    created=NOW,
    handler="udev",
    discovery_details="",
    capacity=1,
    unique_devices=True,
    offline_grace_period=None,
    broker_properties={},
)
T = TypeVar("T")


def device(number: int) -> Device:
    path, node = f"/devices/virtual/block/loop{number}", f"/dev/loop{number}"
    properties = {"UDEV_DEVPATH": path, "UDEV_DEVNODE": node}
    attributes = {"SUBSYSTEM": "block", "DEVTYPE": "disk"}
    return Device(path, properties, (), (DeviceSpec(node, node),), attributes)


@dataclass
class Pass:
    """The decisions of one pass after another, and how long each took."""

    publication: Publication = field(default_factory=lambda: Publication({}))
    current: Mapping[str, InstanceName] = field(default_factory=dict)
    slices: dict[str, StoredSlice] = field(default_factory=dict)
    stored: dict[str, StoredInstance] = field(default_factory=dict)
    times: dict[str, list[float]] = field(default_factory=dict)

    def follow(self, devices: tuple[Device, ...]) -> None:
        instances = self._timed("instances", lambda: self._instances(devices))
        inventory = Inventory({CONFIGURATION.name: CONFIGURATION}, instances, frozenset())
        self.publication = self._timed("publication", lambda: self._publication(inventory))
        plan = self._timed("plan of the pool", self._plan)
        decisions = self._timed("plan of Instances", lambda: self._plan_instances(inventory))
        self._write(plan, decisions)
        self.current = {instance.device: instance.name for instance in instances}

    def _timed(self, name: str, act: Callable[[], T]) -> T:
        start = time.process_time()
        result = act()
        self.times.setdefault(name, []).append((time.process_time() - start) * 1000)
        return result

    def _instances(self, devices: tuple[Device, ...]) -> tuple[Instance, ...]:
        stored = {name: digest for digest, name in self.current.items()}
        taken = TakenNames(stored=stored, current=self.current)
        instances, _ = instances_of(devices, (), CONFIGURATION, NODE, taken)
        return instances

    def _publication(self, inventory: Inventory) -> Publication:
        allocated = frozenset[DeviceName]()
        supply = local_supply(inventory)
        return publish(supply, self.publication, FEATURES, allocated=allocated, now=NOW)

    def _plan(self) -> PoolPlan:
        devices = tuple(offer.device for offer in self.publication.offers.values())
        group = DeviceGroup(NodeScope(NODE), devices)
        desired = DesiredPool(name=NODE, driver="moorage.dev", groups=(group,))
        plan = plan_pool(desired, tuple(self.slices.values()))
        assert isinstance(plan, PoolPlan), plan
        return plan

    def _plan_instances(self, inventory: Inventory) -> list[Mapping[str, Any]]:
        bodies = [derived(i, instance_body, CONFIGURATION, NODE) for i in inventory.local]
        stored = self.stored.values()
        plan_instances(bodies, stored, Retention(graces={}, now=NOW))
        return bodies

    def _write(self, plan: PoolPlan, bodies: list[Mapping[str, Any]]) -> None:
        """As the API server would have it; Instances only of what is there from the first."""
        for written in [w.body for w in plan.creates] + [w.body for w in plan.updates]:
            body = copied(written)
            name = body["metadata"].get("name") or f"{body['metadata']['generateName']}x"
            body["metadata"] |= {"name": name, "uid": name, "resourceVersion": "1"}
            self.slices[name] = stored_slice(body)
        if not self.stored:
            self.stored = {body["metadata"]["name"]: as_stored(body) for body in bodies}


def copied(body: Mapping[str, Any]) -> dict[str, Any]:
    copy: dict[str, Any] = json.loads(json.dumps(body))
    return copy


def as_stored(body: Mapping[str, Any]) -> StoredInstance:
    body = copied(body)
    return stored_instance(
        {**body, "metadata": {**body["metadata"], "uid": "uid", "resourceVersion": "1"}}
    )


def measured(devices: int, rounds: int) -> tuple[Pass, Pass, list[float]]:
    """With what is known, about objects that nothing is known of, and of the baseline."""
    known, anew, least = Pass(), Pass(), list[float]()
    present = tuple(map(device, range(devices)))
    for number in range(rounds):
        there = present if number % 2 == 0 else (*present, device(devices + number))
        known.follow(there)
        anew.stored = {name: replace(stored) for name, stored in anew.stored.items()}
        anew.follow(tuple(map(replace, there)))
        assert anew.publication == known.publication
        bodies = [offer.body for offer in known.publication.offers.values()]
        start = time.process_time()
        json.dumps(bodies, sort_keys=True, separators=(",", ":"))
        least.append((time.process_time() - start) * 1000)
    return known, anew, least


def sums(passes: Pass) -> list[float]:
    return [sum(steps) for steps in zip(*passes.times.values(), strict=True)][2:]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--devices", type=int, default=1000)
    parser.add_argument("--rounds", type=int, default=60)
    arguments = parser.parse_args()
    known, anew, least = measured(arguments.devices, arguments.rounds)
    median = statistics.median
    print(f"{arguments.devices} devices, one comes or goes; ms of CPU, medians")
    print(f"{'':22}{'known':>8}{'anew':>8}{'ratio':>8}")
    # The first two passes write all slices.
    rows = {name: (known.times[name][2:], anew.times[name][2:]) for name in known.times}
    rows["all"] = (sums(known), sums(anew))
    for name, (one, other) in rows.items():
        ratio = median(a / b for a, b in zip(one, other, strict=True))
        print(f"{name:22}{median(one):8.2f}{median(other):8.2f}{ratio:8.2f}")
    print(f"baseline, canonical JSON of all devices {median(least):.2f}")


if __name__ == "__main__":
    main()
