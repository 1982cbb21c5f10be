"""What a node prepares of shared pools: under the names by which the shared driver publishes."""

from __future__ import annotations

from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from driver.api import NODE_LABEL, OFFERED_THROUGH, ConfigurationName
from driver.instances.instances import Instance, instance_of
from driver.instances.inventory import Inventory
from driver.instances.stored.objects import stored_instance
from driver.instances.unseen_instances import observed_instance
from driver.names import shared_pool
from driver.publishing.desired.shared_pools import Nodes, shared_devices, shared_supply
from driver.publishing.desired.slices import Features, published
from tests.driver.builders import NODE, NOW, a_configuration, a_device

NODES = Nodes({NODE: "host-a"})
SOME_FEATURES = st.builds(Features, consumable_capacity=st.booleans(), taints=st.booleans())
LABELS = st.from_regex(r"[a-z0-9]([a-z0-9-]{0,40}[a-z0-9])?", fullmatch=True)
NAMES = st.lists(LABELS, min_size=1, max_size=4).map(".".join)


def an_object(instance: Instance, **metadata: Any) -> dict[str, Any]:
    """The Instance as the API server has it, seen by the node."""
    known = {
        "name": instance.name,
        "namespace": instance.namespace,
        "uid": f"uid-of-{instance.name}",
        "resourceVersion": "1",
        "creationTimestamp": NOW.isoformat(),
        "labels": {NODE_LABEL: ""},
        "annotations": {OFFERED_THROUGH: "dra"},
    }
    spec = {
        "configurationName": instance.configuration,
        "cdiName": instance.cdi_name,
        "capacity": instance.capacity,
        "brokerProperties": dict(instance.properties),
        "nodes": [NODE],
    }
    return {"metadata": {**known, **metadata}, "spec": spec}


@given(
    name=NAMES,
    capacity=st.integers(1, 12),
    unique=st.booleans(),
    features=SOME_FEATURES,
    seen=st.sets(st.integers(0, 5)),
)
@settings(max_examples=60)
def test_node_and_shared_driver_give_a_device_the_same_names(
    name: str, capacity: int, unique: bool, features: Features, seen: set[int]
) -> None:
    configuration = a_configuration(name, capacity=capacity, unique_devices=unique)
    devices = [a_device(f"rtsp://camera-{index}") for index in range(6)]
    instances = [instance_of(device, configuration, None) for device in devices]
    mine = tuple(instances[index] for index in sorted(seen))

    observed_instances = [observed_instance(an_object(instance)) for instance in instances]
    supply = shared_supply(configuration, observed_instances, NODES)
    shown = {d.name: d.instance.name for d in published(supply.instances, features)}
    inventory = Inventory({configuration.name: configuration}, mine, frozenset())
    stored = [stored_instance(an_object(instance)) for instance in instances]
    prepared = shared_devices(inventory, stored, features)

    assert {pool for pool, _ in prepared} == {shared_pool(configuration.name)}
    assert {device: found.name for (_, device), found in prepared.items()} == shown
    assert {found.name for found in prepared.values() if found.online} == {i.name for i in mine}
    assert all(found.device_specs for found in prepared.values() if found.online)


def test_of_an_unheard_configuration_what_is_missing_is_not_called_offline() -> None:
    configuration = a_configuration("camera")
    instance = instance_of(a_device(), configuration, None)
    unheard = frozenset({ConfigurationName("camera")})
    inventory = Inventory({configuration.name: configuration}, (), unheard)
    stored = [stored_instance(an_object(instance))]

    assert shared_devices(inventory, stored, Features(True, True)) == {}


def test_instances_of_a_namesake_elsewhere_are_not_this_one_s() -> None:
    configuration = a_configuration("camera")
    instance = instance_of(a_device(), configuration, None)
    inventory = Inventory({configuration.name: configuration}, (), frozenset())
    stored = [stored_instance(an_object(instance, namespace="elsewhere"))]

    assert shared_devices(inventory, stored, Features(True, True)) == {}
