"""Whether a claim's device is ready, and why not."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from driver.api import ConfigurationName
from driver.preparing.grants.device_locators import DeviceLocator
from driver.preparing.grants.device_views import DevicesView
from driver.preparing.ready_conditions import readiness
from tests.driver.builders import NODE
from tests.driver.claim_builders import a_reference, an_instance, prepared, some_instances

DEGRADED = {"moorage.dev/health": "degraded", "moorage.dev/health-message": "it is hot"}
NO_UTF_8 = "On node node-a: the device is at /dev/\N{REPLACEMENT CHARACTER}."
TAKEN = "is at /dev/a, as is device node-a/loop-bbbbbb of Configuration loop"


@pytest.mark.parametrize(
    ("fields", "withheld", "expected"),
    [
        ({}, "", ("True", "Prepared", "The device is prepared on node node-a.")),
        ({"online": False}, "", ("False", "Offline", "On node node-a: the device is offline.")),
        ({"properties": DEGRADED}, "", ("False", "Degraded", "On node node-a: it is hot.")),
        ({}, TAKEN, ("False", "Withheld", f"On node node-a: the device {TAKEN}.")),
        ({}, "is at /dev/\udcff", ("False", "Withheld", NO_UTF_8)),
    ],
)
def test_a_device_is_ready_if_containers_that_start_get_it(
    fields: dict[str, Any], withheld: str, expected: tuple[str, str, str]
) -> None:
    (device,) = prepared(a_reference(1)).devices
    view = DevicesView(some_instances(an_instance(**fields)), DeviceLocator((), frozenset()))

    found = readiness(replace(device, withheld=withheld), view, NODE)

    assert (found.status, found.reason, found.message) == expected


@pytest.mark.parametrize(("unheard", "is_ready"), [(True, True), (False, False)])
def test_a_device_that_no_handler_has_answered_for_is_not_called_offline(
    unheard: bool, is_ready: bool
) -> None:
    (device,) = prepared(a_reference(1)).devices
    names = frozenset({ConfigurationName("loop")} if unheard else ())
    view = DevicesView({}, DeviceLocator((), names))

    assert readiness(device, view, NODE).is_ready is is_ready


def test_a_device_that_is_reported_and_not_yet_published_is_ready() -> None:
    """A driver that starts knows what it published before by name, until it decides anew."""
    (device,) = prepared(a_reference(1)).devices
    view = DevicesView({}, DeviceLocator([an_instance()], frozenset()))

    assert readiness(device, view, NODE).is_ready


def test_a_device_that_is_reported_as_degraded_is_so_before_it_is_published() -> None:
    (device,) = prepared(a_reference(1)).devices
    view = DevicesView({}, DeviceLocator([an_instance(properties=DEGRADED)], frozenset()))

    assert readiness(device, view, NODE).reason == "Degraded"
