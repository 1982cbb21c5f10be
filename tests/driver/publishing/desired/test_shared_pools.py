"""Pools of devices that several nodes see: what is in them, and for whom."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from driver.api import NODE_LABEL, OFFERED_THROUGH, DeviceName, InstanceName, NodeName
from driver.instances.inventory import Inventory
from driver.instances.slots.lost_nodes import node_state
from driver.instances.stored.objects import stored_instance
from driver.instances.unseen_instances import ObservedInstance, observed_instance
from driver.publishing.apply.resource_slices import AllNodesScope, hostnames
from driver.publishing.desired.next_publication import publish
from driver.publishing.desired.publication import Publication, Supply, claimable_instances
from driver.publishing.desired.shared_pools import (
    LISTED_NODES,
    Nodes,
    Urgency,
    instance_of_observed,
    nodes_of,
    shared_devices,
    shared_supply,
    urgency,
)
from driver.publishing.desired.slices import Features
from tests.driver.builders import NOW, a_configuration
from tests.driver.slot_builders import (
    CAMERA_1,
    CAMERA_2,
    CONFIGURATION,
    NODE_A,
    NODE_B,
    a_camera,
    an_instance_object,
)

FEATURES = Features(consumable_capacity=True, taints=True)
CAMERAS = a_configuration(
    CONFIGURATION,
    capacity=3,
    attributes={"floor": {"int": 3}},
    offline_taint_effect="NoExecute",
)
TWO = Nodes({NODE_A: "host-a", NODE_B: "host-b"})
MINUTE = timedelta(minutes=1)


def an_observed_instance(
    *nodes: NodeName, name: str = CAMERA_1, label: str = "", **metadata: Any
) -> ObservedInstance:
    body = an_instance_object(name, nodes=list(nodes), brokerProperties={"URL": name})
    times = {"creationTimestamp": NOW.isoformat(), "labels": {NODE_LABEL: label}}
    says = {"annotations": {OFFERED_THROUGH: "dra"}}
    return observed_instance(
        {**body, "metadata": {**body["metadata"], **times, **says, **metadata}}
    )


def supply_of(*observed_instances: ObservedInstance, nodes: Nodes = TWO) -> Supply:
    return shared_supply(CAMERAS, observed_instances, nodes)


def test_a_device_is_for_the_nodes_that_see_it_by_their_hostnames() -> None:
    supply = supply_of(
        an_observed_instance(NODE_A, NODE_B), an_observed_instance(NODE_B, name=CAMERA_2)
    )

    assert supply.scopes == {
        CAMERA_1: hostnames(frozenset({"host-a", "host-b"})),
        CAMERA_2: hostnames(frozenset({"host-b"})),
    }


def test_what_the_configuration_asks_for_now_counts() -> None:
    (instance,) = supply_of(an_observed_instance(NODE_A)).instances

    assert instance.capacity == 3, "and not the 2 that nodes have written so far"
    assert instance.user_attributes == {"floor": {"int": 3}}
    assert supply_of().effects == {CONFIGURATION: "NoExecute"}
    assert instance.properties == {"URL": CAMERA_1}
    assert f"{CONFIGURATION}-{instance.hash}" == instance.name


@pytest.mark.parametrize("seeing", [(), (NodeName("deleted"),), (NodeName("nameless"),)])
def test_a_device_that_no_node_can_use_is_away(seeing: tuple[NodeName, ...]) -> None:
    nodes = Nodes({NODE_A: "host-a", NodeName("nameless"): None})

    supply = supply_of(an_observed_instance(*seeing), nodes=nodes)

    assert not supply.instances
    assert supply.lingering == {CAMERA_1}


def test_all_nodes_are_listed_as_long_as_the_list_is_short() -> None:
    few = {NodeName(f"node-{i}"): f"host-{i}" for i in range(LISTED_NODES)}
    many = {**few, NodeName("another"): "another"}

    assert Nodes(few).scope(frozenset(few)) == hostnames(frozenset(few.values()))
    assert Nodes(many).scope(frozenset(many)) == AllNodesScope()
    assert Nodes(many).scope(frozenset(few)) == hostnames(frozenset(few.values()))


def test_instances_of_a_namesake_and_those_that_are_deleted_are_left_out() -> None:
    elsewhere = an_observed_instance(NODE_A, namespace="elsewhere")
    deleted = an_observed_instance(NODE_A, name=CAMERA_2, deletionTimestamp=NOW.isoformat())

    supply = supply_of(elsewhere, deleted)

    assert (supply.instances, supply.lingering) == ((), frozenset())


def test_slots_that_are_held_are_told() -> None:
    body = an_instance_object(CAMERA_1, {f"{CAMERA_1}-1": NODE_A}, nodes=[NODE_A])
    metadata = {**body["metadata"], "creationTimestamp": NOW.isoformat()}
    observed = observed_instance({**body, "metadata": {**metadata, "labels": {NODE_LABEL: ""}}})

    assert supply_of(observed).held == {("default", CAMERA_1): 1}


def test_devices_that_come_or_go_are_more_urgent_than_whom_they_are_for() -> None:
    observed = an_observed_instance(NODE_A)

    assert urgency(None, observed) is Urgency.NOW
    assert urgency(observed, None) is Urgency.NOW
    assert urgency(observed, an_observed_instance()) is Urgency.NOW
    assert urgency(an_observed_instance(), observed) is Urgency.NOW
    assert urgency(observed, replace(observed, properties={"URL": "other"})) is Urgency.NOW
    assert urgency(observed, an_observed_instance(NODE_A, NODE_B)) is Urgency.SOON


def test_what_does_not_concern_the_pool_is_no_change() -> None:
    observed = an_observed_instance(NODE_A)

    assert urgency(observed, an_observed_instance(NODE_A, resourceVersion="2")) is Urgency.NEVER
    assert urgency(observed, replace(observed, offline_since=NOW)) is Urgency.NEVER
    assert urgency(None, an_observed_instance(NODE_A, label=NODE_A)) is Urgency.NEVER


def test_a_node_without_its_label_has_no_hostname() -> None:
    metadata: dict[str, Any] = {"name": "node-a", "creationTimestamp": NOW.isoformat()}
    labelled = {**metadata, "labels": {"kubernetes.io/hostname": "host-a"}}

    assert nodes_of([node_state({"metadata": metadata})]).hostnames == {NODE_A: None}
    assert nodes_of([node_state({"metadata": labelled})]).hostnames == {NODE_A: "host-a"}


class SharedLife:
    """A pool over time."""

    def __init__(self, features: Features = FEATURES) -> None:
        self.features = features
        self.now = NOW
        self.publication = Publication({})

    def passes(
        self, *observed_instances: ObservedInstance, allocated: frozenset[DeviceName] | None
    ) -> Publication:
        self.now += MINUTE
        self.publication = publish(
            supply_of(*observed_instances),
            self.publication,
            self.features,
            allocated=allocated,
            now=self.now,
        )
        return self.publication


def test_a_device_is_tainted_as_long_as_its_instance_stays_and_then_removed() -> None:
    life, free = SharedLife(), frozenset[DeviceName]()
    (name,) = life.passes(an_observed_instance(NODE_A), allocated=None).offers

    for _ in range(9):
        (absent,) = life.passes(an_observed_instance(), allocated=free).offers.values()
        (taint,) = absent.body["taints"]
        assert (taint["key"], taint["effect"]) == ("moorage.dev/offline", "NoExecute")
        assert absent.scope == hostnames(frozenset({"host-a"}))
    assert not claimable_instances(life.publication, free), "so its Instance may be removed"

    assert life.passes(allocated=frozenset({name})).offers.keys() == {name}
    assert claimable_instances(life.publication, frozenset({name})) == {CAMERA_1}
    assert claimable_instances(life.publication, None) == {CAMERA_1}
    assert life.passes(allocated=free).offers == {}


def test_a_device_that_returns_is_untainted_under_the_same_name() -> None:
    life = SharedLife()
    before = life.passes(an_observed_instance(NODE_A), allocated=None)
    life.passes(an_observed_instance(), allocated=frozenset())

    assert life.passes(an_observed_instance(NODE_A), allocated=None).offers == before.offers
    assert claimable_instances(life.publication, frozenset()) == {CAMERA_1}


def test_where_no_taint_is_kept_a_device_is_removed_when_no_claim_has_it() -> None:
    life = SharedLife(Features(consumable_capacity=False, taints=False))
    names = life.passes(an_observed_instance(NODE_A), allocated=None).offers.keys()
    held = frozenset({DeviceName(f"{CAMERA_1}-1")})

    assert names == {f"{CAMERA_1}-{use}" for use in range(3)}
    life.passes(an_observed_instance(), allocated=held)
    assert life.passes(an_observed_instance(), allocated=held).offers.keys() == held
    assert life.passes(an_observed_instance(), allocated=frozenset()).offers == {}
    assert life.passes(an_observed_instance(NODE_A), allocated=None).offers.keys() == names


def test_the_instance_of_a_sight_has_nothing_of_a_node() -> None:
    instance = instance_of_observed(an_observed_instance(NODE_A), CAMERAS)

    assert instance.shared
    assert (instance.mounts, instance.device_specs) == ((), ())
    assert instance.name == InstanceName(CAMERA_1)


def test_nothing_is_published_of_an_instance_that_the_device_plugin_offers() -> None:
    before, after = an_observed_instance(NODE_A, annotations={}), an_observed_instance(NODE_A)

    supply = supply_of(before)

    assert supply.instances == ()
    assert supply.lingering == {CAMERA_1}, "what was published of it before goes when it may"
    assert urgency(before, after) is Urgency.NOW


def test_slots_that_are_held_on_any_node_are_deducted() -> None:
    body = an_instance_object(CAMERA_1, {f"{CAMERA_1}-1": "node-b"}, nodes=[NODE_A])
    metadata = {
        **body["metadata"],
        "creationTimestamp": NOW.isoformat(),
        "labels": {NODE_LABEL: ""},
        "annotations": {OFFERED_THROUGH: "dra"},
    }

    supply = supply_of(observed_instance({**body, "metadata": metadata}))

    assert supply.held == {("default", CAMERA_1): 1}


@pytest.mark.parametrize(
    ("says", "held", "count"),
    [("dra", 0, 1), ("dra", 1, 1), (None, 0, 0), pytest.param("dra", 2, 0, id="none-left")],
)
def test_claim_of_what_the_device_plugin_gives_away_is_prepared_nowhere(
    says: str | None, held: int, count: int
) -> None:
    usage = {f"{CAMERA_1}-{index}": NODE_B for index in range(held)}
    body = an_instance_object(CAMERA_1, usage, nodes=[NODE_A])
    annotations = {OFFERED_THROUGH: says} if says else {}
    stored = stored_instance({**body, "metadata": {**body["metadata"], "annotations": annotations}})
    inventory = Inventory({CAMERAS.name: CAMERAS}, (a_camera(CAMERA_1),), frozenset())

    assert len(shared_devices(inventory, [stored], FEATURES)) == count
