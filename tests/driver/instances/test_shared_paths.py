"""By which path devices that several nodes see are offered, and when that may change."""

from __future__ import annotations

from dataclasses import replace

import pytest

from driver.api import NODE_LABEL, OFFERED_THROUGH
from driver.instances.shared_paths import offer_through, plan_paths
from driver.instances.slots.slots import full_sentence
from driver.instances.unseen_instances import ObservedInstance, observed_instance
from driver.offer_paths import OfferPath
from tests.driver.builders import NOW
from tests.driver.slot_builders import CAMERA_1, NODE_A, an_instance_object

DRA, DEVICE_PLUGIN = OfferPath.DRA, OfferPath.DEVICE_PLUGIN


def an_observed_instance(says: str | None = None, label: str | None = "") -> ObservedInstance:
    body = an_instance_object(CAMERA_1, {f"{CAMERA_1}-0": NODE_A})
    metadata = {**body["metadata"], "creationTimestamp": NOW.isoformat()}
    if says is not None:
        metadata["annotations"] = {OFFERED_THROUGH: says}
    if label is not None:
        metadata["labels"] = {NODE_LABEL: label}
    return observed_instance({**body, "metadata": metadata})


def test_what_is_for_claims_from_now_on_says_so_whoever_holds_slots() -> None:
    observed = an_observed_instance()

    assert plan_paths([observed], DRA, None) == (offer_through(observed.slots, DRA),)


@pytest.mark.parametrize("claimed", [None, {CAMERA_1}])
def test_what_a_claim_has_or_may_have_is_not_for_the_device_plugin_yet(
    claimed: set[str] | None,
) -> None:
    assert plan_paths([an_observed_instance("dra")], DEVICE_PLUGIN, claimed) == ()


def test_what_no_claim_has_is_for_the_device_plugin() -> None:
    observed = an_observed_instance("dra")

    assert plan_paths([observed], DEVICE_PLUGIN, frozenset()) == (
        offer_through(observed.slots, DEVICE_PLUGIN),
    )


@pytest.mark.parametrize(("says", "wanted"), [("dra", DRA), (None, DEVICE_PLUGIN)])
def test_what_says_so_already_is_left_alone(says: str | None, wanted: OfferPath) -> None:
    assert plan_paths([an_observed_instance(says)], wanted, frozenset()) == ()


@pytest.mark.parametrize("label", [NODE_A, None])
def test_devices_of_one_node_are_that_node_s_to_offer(label: str | None) -> None:
    assert plan_paths([an_observed_instance(label=label)], DRA, frozenset()) == ()


def test_an_instance_that_is_being_deleted_says_nothing_more() -> None:
    observed = an_observed_instance()
    deleted = replace(observed, slots=replace(observed.slots, deleted=True))

    assert plan_paths([deleted], DRA, frozenset()) == ()


@pytest.mark.parametrize(("path", "value"), [(DRA, "dra"), (DEVICE_PLUGIN, None)])
def test_the_write_is_refused_if_a_slot_was_taken_since(path: OfferPath, value: str | None) -> None:
    assert offer_through(an_observed_instance().slots, path).patch == {
        "metadata": {
            "uid": f"uid-of-{CAMERA_1}",
            "resourceVersion": "1",
            "annotations": {"moorage.dev/offered-through": value},
        }
    }


def test_no_slot_is_given_of_what_is_for_claims() -> None:
    slots = an_observed_instance("dra").slots

    assert slots.free == (1,)
    assert slots.available == ()
    assert "Dynamic Resource Allocation" in full_sentence(slots, NODE_A)


def test_another_word_in_the_annotation_says_nothing() -> None:
    assert an_observed_instance("by hand").slots.available == (1,)
