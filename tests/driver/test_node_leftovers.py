"""What is left of the device plugin where it is the path no more."""

from __future__ import annotations

from driver.instance_objects import stored_instance
from driver.node_leftovers import no_longer_offered
from tests.driver.slot_builders import CAMERA_1, RESOURCE, an_instance_object

STORED = stored_instance(an_instance_object(CAMERA_1))


def test_a_node_is_to_offer_none_of_the_resources_that_a_plugin_had() -> None:
    node = {"status": {"allocatable": {RESOURCE: "2", f"akri.sh/{CAMERA_1}": "3", "cpu": "4"}}}

    assert no_longer_offered(node, [STORED]) == {RESOURCE: 0, f"akri.sh/{CAMERA_1}": 0}


def test_resources_of_others_and_those_it_offers_none_of_are_left_alone() -> None:
    node = {"status": {"allocatable": {RESOURCE: "0", "akri.sh/of-an-agent": "3"}}}

    assert no_longer_offered(node, [STORED]) == {}


def test_a_node_that_was_just_made_offers_nothing() -> None:
    assert no_longer_offered({"metadata": {}}, [STORED]) == {}
