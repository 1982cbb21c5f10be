"""Which pool of a node shows a device, and what claims may name it by."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from driver.api import ConfigurationName, DeviceName, NodeName
from driver.instances.instances import Instance
from driver.instances.inventory import Heard, Inventory, inventory_of
from driver.names import POOL_LIMIT, is_pool_of, is_shared_pool, local_pool
from driver.preparing.files.prepared import prepared_homes
from driver.preparing.grants.device_locators import DeviceLocator
from driver.preparing.grants.device_views import DevicesView
from driver.publishing.desired.local_pools import (
    Homes,
    KnownPools,
    local_supplies,
    traces_of_instance,
)
from tests.driver.builders import NODE, a_device
from tests.driver.claim_builders import a_reference, a_result, an_instance, prepared
from tests.driver.instances.test_inventory import a_verdict

CAMERA = ConfigurationName("camera")
names = st.from_regex(r"[a-z0-9]([a-z0-9.-]{0,251}[a-z0-9])?", fullmatch=True)


def an_inventory(**ids: str) -> Inventory:
    """Configurations with the devices whose ids the words are."""
    verdicts = [a_verdict(name) for name in ids]
    heard = {
        ConfigurationName(v.name): Heard(v.uid, tuple(map(a_device, ids[v.name].split())))
        for v in verdicts
    }
    return inventory_of(verdicts, heard, NODE)


def homes_of(instance: Instance, pool: str) -> Homes:
    return dict.fromkeys(traces_of_instance(instance), pool)


@given(node=names, other=names, configuration=names)
def test_a_pools_name_fits_and_tells_its_node(node: str, other: str, configuration: str) -> None:
    pool = local_pool(NodeName(node), ConfigurationName(configuration))

    assert len(pool) <= POOL_LIMIT
    assert is_pool_of(node, pool)
    assert not is_shared_pool(pool)
    assert node == other or not is_pool_of(other, pool)


def test_many_devices_of_a_configuration_are_in_a_pool_of_their_own_and_few_are_not() -> None:
    supplies = local_supplies(
        an_inventory(camera="one two", disk="three"), NODE, KnownPools(), most=1
    )

    assert [(pool, len(supply.instances)) for pool, supply in supplies.items()] == [
        (NODE, 1),
        (local_pool(NODE, CAMERA), 2),
    ]


def test_devices_that_a_pool_shows_stay_in_it_though_they_are_few_or_many_now() -> None:
    many, few = an_inventory(camera="one two"), an_inventory(camera="one")
    (one,) = few.instances
    own = local_pool(NODE, CAMERA)

    grown = local_supplies(many, NODE, KnownPools(homes_of(one, NODE)), most=1)
    shrunk = local_supplies(few, NODE, KnownPools(homes_of(one, own)), most=1)

    assert [i.device for i in grown[NODE].instances] == [one.device]
    assert len(grown[own].instances) == 1
    assert [i.device for i in shrunk[own].instances] == [one.device]


def test_a_device_that_two_configurations_offer_is_where_each_has_its_own() -> None:
    """Else one of few would wait for the many of the other."""
    inventory = an_inventory(camera="one two", lens="one")
    own = local_pool(NODE, CAMERA)
    cameras = [i for i in inventory.instances if i.configuration == CAMERA]
    homes = {trace: own for camera in cameras for trace in traces_of_instance(camera)}

    supplies = local_supplies(inventory, NODE, KnownPools(homes), most=1)

    assert [i.configuration for i in supplies[NODE].instances] == ["lens"]
    assert list(supplies[own].instances) == cameras


def test_a_pool_is_another_only_if_its_own_configuration_is() -> None:
    before, after = (
        local_supplies(inventory, NODE, KnownPools(), most=1)
        for inventory in (an_inventory(camera="a b"), an_inventory(camera="a b", disk="c d"))
    )

    pool = local_pool(NODE, CAMERA)
    assert [i.configuration for i in before[pool].instances] == [CAMERA, CAMERA]
    assert after[pool] == before[pool]
    assert after.keys() - before.keys() == {local_pool(NODE, ConfigurationName("disk"))}


@pytest.mark.parametrize("pool", [NODE, local_pool(NODE, CAMERA)])
def test_what_is_prepared_goes_on_being_shown_where_it_was(pool: str) -> None:
    """The kubelet removes the slices of a driver that is away for long."""
    inventory = an_inventory(camera="one")
    (camera,) = inventory.instances
    claim = prepared(
        a_reference(),
        a_result(camera.name, pool=pool),
        instances={(pool, DeviceName(camera.name)): camera},
    )

    for most in (0, 1):
        known = KnownPools(prepared_homes([claim], NODE))
        supplies = local_supplies(inventory, NODE, known, most=most)

        assert supplies[pool].instances == (camera,)
        assert sum(len(supply.instances) for supply in supplies.values()) == 1


def test_a_claim_that_names_the_nodes_own_pool_is_served_from_the_new_one() -> None:
    instance, pool = an_instance("camera-aaaaaa"), local_pool(NODE, CAMERA)
    view = DevicesView({(pool, DeviceName("camera-aaaaaa")): instance}, DeviceLocator(()))
    claim = prepared(
        a_reference(),
        a_result("camera-aaaaaa"),
        instances={(NODE, DeviceName("camera-aaaaaa")): instance},
    )
    other = prepared(
        a_reference(2),
        a_result("camera-aaaaaa", pool=pool),
        instances={(pool, DeviceName("camera-aaaaaa")): instance},
    )
    (old,), (new,) = ((d.allocated for d in c.devices) for c in (claim, other))

    assert view.instance(old) is instance
    assert old.excludes(new)
    assert new.excludes(old)
