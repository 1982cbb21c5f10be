"""What properties say of a device's health, and who is told."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest

from driver.device_health import Degraded, degraded, for_containers
from driver.device_plugin.slots.lists import offered_by
from driver.instances.inventory import Inventory
from driver.preparing.files import cdi
from driver.preparing.grants.device_locators import DeviceLocator
from driver.preparing.grants.renewals import renew
from driver.publishing.desired.next_publication import publish
from driver.publishing.desired.publication import Publication, Supply
from driver.publishing.desired.slices import Features, published
from tests.driver.builders import NOW
from tests.driver.claim_builders import a_reference, an_instance, prepared, some_instances

ALL = Features(consumable_capacity=True, taints=True)
NOT_WELL = {"moorage.dev/health": "degraded"}
TOLD = {"moorage.dev/health-message": "the lens is dirty"}
TAINT = {"key": "moorage.dev/degraded", "effect": "NoSchedule"}


@pytest.mark.parametrize(
    ("properties", "said"),
    [
        ({}, None),
        ({"moorage.dev/health": "healthy", **TOLD}, None),
        (NOT_WELL, Degraded("the device is degraded", "NoSchedule")),
        ({**NOT_WELL, **TOLD}, Degraded("the lens is dirty", "NoSchedule")),
        (
            {**NOT_WELL, "moorage.dev/health-effect": "NoExecute"},
            Degraded("the device is degraded", "NoExecute"),
        ),
        (
            {**NOT_WELL, "moorage.dev/health-effect": "Whatever"},
            Degraded("the device is degraded", "NoSchedule"),
        ),
        (
            {**NOT_WELL, "moorage.dev/health-message": "a\nb" * 1000},
            Degraded(("a?b" * 1000)[:512], "NoSchedule"),
        ),
    ],
)
def test_what_properties_say(properties: dict[str, str], said: Degraded | None) -> None:
    assert degraded(properties) == said


def bodies(properties: dict[str, str], features: Features = ALL, **fields: Any) -> Any:
    (device,) = published([an_instance(properties=properties, **fields)], features)
    return device.body


def test_a_degraded_device_is_tainted_and_says_so() -> None:
    body = bodies(NOT_WELL)

    assert body["taints"] == [TAINT]
    assert body["attributes"]["health"] == {"string": "degraded"}
    assert "taints" not in bodies({})
    assert "health" not in bodies({})["attributes"]


def test_one_that_says_that_it_is_well_is_not_tainted() -> None:
    body = bodies({"moorage.dev/health": "healthy"})

    assert body["attributes"]["health"] == {"string": "healthy"}
    assert "taints" not in body


def test_its_effect_is_its_handlers_to_say() -> None:
    body = bodies({**NOT_WELL, "moorage.dev/health-effect": "NoExecute"})

    assert body["taints"] == [{**TAINT, "effect": "NoExecute"}]


def test_where_taints_are_not_kept_it_has_none() -> None:
    features = Features(consumable_capacity=True, taints=False)

    assert "taints" not in bodies(NOT_WELL, features)


def test_health_that_is_no_attribute_is_left_out() -> None:
    assert "health" not in bodies({"moorage.dev/health": "a\nb"})["attributes"]


def test_one_that_goes_away_is_offline_and_comes_back_well() -> None:
    ill = publish(
        Supply(instances=(an_instance(properties=NOT_WELL),)),
        Publication({}),
        ALL,
        allocated=frozenset(),
        now=NOW,
    )
    away = publish(Supply(), ill, ALL, allocated=None, now=NOW)
    back = publish(Supply(instances=(an_instance(),)), away, ALL, allocated=None, now=NOW)

    (offer,) = away.offers.values()
    assert [taint["key"] for taint in offer.body["taints"]] == [
        "moorage.dev/degraded",
        "moorage.dev/offline",
    ]
    (offer,) = back.offers.values()
    assert "taints" not in offer.body


def test_the_device_plugin_calls_it_unhealthy() -> None:
    well, ill = an_instance(), an_instance("loop-bbbbbb", properties=NOT_WELL)

    assert offered_by(Inventory({}, (well, ill), frozenset())).online == {well.name}


def test_containers_are_told_nothing_and_their_pods_neither() -> None:
    """Who has it keeps it; what it says of itself is no reason to plan its claim anew."""
    reference = a_reference()
    well = replace(an_instance(), device="serial")
    claim = prepared(reference, instances=some_instances(well))
    ill = replace(well, properties={**well.properties, **NOT_WELL, **TOLD})

    assert "moorage.dev/health" not in json.dumps(json.loads(cdi.dump(claim)))
    assert renew({reference.uid: claim}, DeviceLocator([ill]), str) == {}
    assert prepared(reference, instances=some_instances(ill)) == claim


def test_properties_for_containers_are_those_that_are_not_for_moorage() -> None:
    assert for_containers({"A": "1", **NOT_WELL}) == {"A": "1"}
    assert for_containers({"A": "1"}) == {"A": "1"}
