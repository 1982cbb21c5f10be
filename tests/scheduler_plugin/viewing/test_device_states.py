"""The state of a device: what its Instance and the taints in its slices say."""

from __future__ import annotations

from typing import Any

import pytest

from driver.api import DRIVER_NAME
from driver.shapes.instance_taints import TaintRuleIndex
from kube.shapes.taint_rules import DeviceTaintRule
from scheduler_plugin.objects.amounts import ResourceKey
from scheduler_plugin.objects.claims import DeviceId
from scheduler_plugin.objects.devices.devices import InstanceView
from scheduler_plugin.reclaiming.placement.offered_devices import OfferedDevices
from scheduler_plugin.reclaiming.placement.published_slices import published_slice
from scheduler_plugin.viewing.device_states import AT_ONCE, DeviceState, DeviceStates
from tests.fakes.taint_rules import a_rule
from tests.scheduler_plugin.builders import a_slice_object

NAME = "onvif-aaaaaa"
SINCE = "2026-11-21T12:00:00Z"
OFFLINE = {"key": "moorage.dev/offline", "effect": "NoSchedule", "timeAdded": SINCE}
DEGRADED = {"key": "moorage.dev/degraded", "value": "smart", "effect": "NoExecute"}


def an_instance(*nodes: str, name: str = NAME, **more: Any) -> InstanceView:
    return InstanceView(name, ResourceKey("onvif"), nodes, 2, **more)


def offered(*taints: dict[str, Any], name: str = NAME, **spec: Any) -> OfferedDevices:
    """A device in a slice, with these taints."""
    found = a_slice_object("s", ("onvif", name), **spec)
    for device in found["spec"]["devices"]:
        device["taints"] = list(taints)
    devices = OfferedDevices()
    devices.put_slice(published_slice(found))
    return devices


def state(
    instance: InstanceView, devices: OfferedDevices | None, *rules: DeviceTaintRule
) -> DeviceState:
    shown = DeviceStates(devices, TaintRuleIndex(rules))
    for _ in shown.steps():
        pass
    return shown.of_instance(instance)


def test_a_device_that_is_offered_without_taints_is_ready() -> None:
    assert state(an_instance("n"), offered()) == DeviceState(state="Ready")


def test_a_device_that_went_says_since_when_and_where_it_was() -> None:
    found = state(an_instance(), offered(OFFLINE, nodeName="n"))

    assert found == DeviceState(
        state="Offline",
        since=SINCE,
        taints=("moorage.dev/offline:NoSchedule",),
        published_on=("n",),
    )


def test_the_offline_taint_counts_before_others_and_before_the_instance() -> None:
    earlier = {**DEGRADED, "timeAdded": "2026-11-20T00:00:00Z"}
    found = state(an_instance("n"), offered(earlier, OFFLINE))

    assert (found.state, found.since) == ("Offline", SINCE)


def test_without_slices_the_instance_says_since_when_no_node_sees_it() -> None:
    for devices in (None, OfferedDevices()):
        found = state(an_instance(offline_since=SINCE), devices)
        assert found == DeviceState(state="Offline", since=SINCE)


def test_taints_are_told_with_value_and_effect() -> None:
    found = state(an_instance("n"), offered(DEGRADED, nodeName="n"))

    assert (found.state, found.since) == ("Tainted", "")
    assert found.taints == ("moorage.dev/degraded=smart:NoExecute",)


@pytest.mark.parametrize(
    ("instance", "expected"),
    [
        (an_instance("n", name="onvif-bbbbbb"), "Withheld"),
        (an_instance("n", name="onvif-bbbbbb", held=(("n", 1),)), "Ready"),
        (an_instance("n", name="x" * 65), "Ready"),
        (an_instance(name="onvif-bbbbbb"), "Offline"),
    ],
)
def test_a_device_that_no_slice_offers_is_withheld(instance: InstanceView, expected: str) -> None:
    """Slots that pods hold tell of the device plugin; of a long name slices say the beginning."""
    assert state(instance, offered()).state == expected


def test_on_a_cluster_without_slices_no_device_is_withheld() -> None:
    assert state(an_instance("n"), OfferedDevices()).state == "Ready"


def test_another_drivers_device_is_as_its_slice_says() -> None:
    devices = offered(DEGRADED, driver="gpu.example.com", nodeName="n")
    shown = DeviceStates(devices)

    tainted = shown.of_other(DeviceId("gpu.example.com", "onvif", NAME))
    gone = shown.of_other(DeviceId("gpu.example.com", "onvif", "other"))
    assert (tainted.state, tainted.published_on) == ("Tainted", ("n",))
    assert gone == DeviceState(state="Withheld")


def test_others_have_their_turn_while_many_devices_are_looked_at() -> None:
    found = a_slice_object("s", *(("onvif", f"i-{number}") for number in range(3 * AT_ONCE)))
    devices = OfferedDevices()
    devices.put_slice(published_slice(found))

    assert found["spec"]["driver"] == DRIVER_NAME
    assert len(list(DeviceStates(devices).steps())) > 3


RULE = "example.com/repair:NoSchedule (DeviceTaintRule repair)"


@pytest.mark.parametrize("devices", [None, OfferedDevices(), offered()])
def test_a_device_that_a_rule_selects_is_tainted_on_either_path(
    devices: OfferedDevices | None,
) -> None:
    found = state(an_instance("n"), devices, a_rule(pool="n"))

    assert (found.state, found.taints, found.rules) == ("Tainted", (RULE,), ("repair",))
    assert state(an_instance("n"), devices, a_rule(pool="m")).state == "Ready"


def test_a_rule_of_one_slot_leaves_the_others() -> None:
    found = state(an_instance("n"), offered(), a_rule(device=f"{NAME}-1"))

    assert (found.state, found.taints, found.rules) == ("Tainted", (RULE,), ())


def test_the_taints_of_slices_and_of_rules_are_both_told() -> None:
    found = state(an_instance(), offered(OFFLINE), a_rule())

    assert (found.state, found.since) == ("Offline", SINCE)
    assert found.taints == ("moorage.dev/offline:NoSchedule", RULE)


def test_a_rule_taints_devices_of_other_drivers_too() -> None:
    devices = offered(driver="gpu.example.com", nodeName="n")
    shown = DeviceStates(devices, TaintRuleIndex([a_rule(driver="gpu.example.com")]))

    assert shown.of_other(DeviceId("gpu.example.com", "onvif", NAME)).taints == (RULE,)
