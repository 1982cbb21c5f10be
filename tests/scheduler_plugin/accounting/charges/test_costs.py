"""What claims and requests cost: every way to ask, and every way to be given."""

from __future__ import annotations

from typing import Any

import pytest

from scheduler_plugin.accounting.charges.costs import (
    asked_cost,
    claim_cost,
    granted_cost,
    is_accounted,
)
from scheduler_plugin.accounting.world import World
from scheduler_plugin.objects.amounts import NO_CHARGES, Charges, ResourceKey
from scheduler_plugin.objects.devices.devices import ClassView, InstanceView
from scheduler_plugin.objects.names import QueueName
from tests.scheduler_plugin.builders import (
    a_choice,
    a_claim,
    a_class,
    a_pod,
    a_queue,
    a_request,
    a_result,
    a_slice,
    a_world,
    amounts,
    our_class,
    their_class,
)

GPU = "gpu.example.com"


def world() -> World:
    """Classes onvif and udev of Moorage's; gpu, which a queue lists; net, which nobody counts."""
    found = a_world(our_class("udev"), a_class("gpu"), a_class("net"), a_queue(gpu=(1, 1)))
    found.put_slice(a_slice("a", ("onvif", "onvif-aaaaaa"), ("udev", "u-1"), nodeName="a"))
    devices = [("udev", f"u-{number}") for number in range(3)]
    found.put_slice(a_slice("b", *devices, nodeName="b"))
    found.put_slice(a_slice("all", ("onvif", "onvif-bbbbbb"), allNodes=True))
    found.put_slice(a_slice("gpus", ("", ""), ("", ""), driver=GPU, nodeName="a"))
    return found


@pytest.mark.parametrize(
    ("requests", "most"),
    [
        ([a_request()], amounts(onvif=1)),
        ([a_request(count=3)], amounts(onvif=3)),
        ([a_request(count=3, slots="2")], amounts(onvif=6)),
        ([a_request(slots="0")], amounts(onvif=1)),
        ([a_request(slots="1500m")], amounts(onvif=2)),
        ([a_request(slots="1k")], amounts(onvif=1000)),
        ([a_request(allocationMode="All")], amounts(onvif=2)),
        ([a_request("udev", allocationMode="All")], amounts(udev=3)),
        ([a_request("udev", allocationMode="All", slots="2")], amounts(udev=6)),
        ([a_request(count=3, adminAccess=True)], NO_CHARGES),
        ([a_request(allocationMode="All", adminAccess=True)], NO_CHARGES),
        ([a_request("net")], NO_CHARGES),
        ([a_request("unheard-of")], NO_CHARGES),
        ([a_request(), a_request("gpu"), a_request(count=2), a_request("net")],
         amounts(gpu=1, onvif=3)),
        ([a_choice(a_request(count=2), a_request(count=3))], amounts(onvif=3)),
        ([a_choice(a_request(count=2), a_request("gpu", count=4))], amounts(gpu=4, onvif=2)),
        ([a_choice(a_request("net"), a_request("gpu"))], amounts(gpu=1)),
        ([a_choice(a_request(), a_request(allocationMode="All"))], amounts(onvif=2)),
        ([], NO_CHARGES),
    ],
)  # fmt: skip
def test_claim_that_is_not_allocated_costs_at_most(requests: list[Any], most: Charges) -> None:
    assert claim_cost(a_claim(requests=requests), world().facts.catalog) == most


CHOICE = a_choice(a_request(name="ours"), a_request("gpu", name="gpu", count=2))


@pytest.mark.parametrize(
    ("requests", "results", "exactly"),
    [
        ([a_request(count=2)], [a_result(), a_result()], amounts(onvif=2)),
        ([a_request()], [a_result(slots="3")], amounts(onvif=3)),
        ([a_request("gpu")], [a_result(driver=GPU, slots="3")], amounts(gpu=1)),
        ([a_request(allocationMode="All")], [a_result()] * 5, amounts(onvif=5)),
        ([a_request()], [a_result(adminAccess=True, slots="3")], NO_CHARGES),
        ([CHOICE], [a_result("req/ours")], amounts(onvif=1)),
        ([CHOICE], [a_result("req/gpu", driver=GPU)] * 2, amounts(gpu=2)),
        ([a_request(), a_request("net", name="net")],
         [a_result(), a_result("net", driver="net.example.com")], amounts(onvif=1)),
        ([a_request()], [a_result("unheard-of")], NO_CHARGES),
        ([a_request()], [], NO_CHARGES),
    ],
)  # fmt: skip
def test_allocated_claim_costs_exactly(
    requests: list[Any], results: list[Any], exactly: Charges
) -> None:
    claim = a_claim(requests=requests, results=results)

    assert claim_cost(claim, world().facts.catalog) == exactly


OTHERS = {"selectors": [{"cel": {"expression": f'device.driver == "{GPU}"'}}]}


def test_slots_of_another_drivers_devices_are_its_own_affair() -> None:
    """What that driver calls slots is a part of a device to it, and no use that queues count."""
    found = world()
    found.put_class(a_class("gpu", spec=OTHERS))
    claim = a_claim(requests=[a_request("gpu", count=2, slots="64")])

    assert claim_cost(claim, found.facts.catalog) == amounts(gpu=2)


OURS = 'device.driver == "moorage.dev"'
ALL_UDEV = f'{OURS} && device.attributes["moorage.dev"].configuration == "udev"'


@pytest.mark.parametrize(
    ("found", "most"),
    [
        (a_class("gpu"), amounts(gpu=3)),
        (their_class("gpu", ALL_UDEV), amounts(udev=3)),
        # Which Configuration pays is known once a device is allocated.
        (their_class("gpu", OURS), NO_CHARGES),
    ],
    ids=["says-no-driver", "one-configuration", "several"],
)
def test_a_class_that_may_select_ours_costs_what_its_slots_can_be(
    found: ClassView, most: Charges
) -> None:
    known = world()
    known.put_class(found)

    claim = a_claim(requests=[a_request("gpu", slots="3")])

    assert claim_cost(claim, known.facts.catalog) == most


NO_SLOTS: list[Any] = ["-1", "nonsense", "", "1e99999", None, -3, 1.5, [], "0"]


@pytest.mark.parametrize("written", NO_SLOTS)
def test_a_device_of_ours_is_never_free_whatever_its_slots_say(written: Any) -> None:
    result = a_result() | {"consumedCapacity": {"slots": written}}

    assert claim_cost(a_claim(results=[result]), world().facts.catalog) == amounts(onvif=1)


@pytest.mark.parametrize("written", NO_SLOTS)
def test_nonsense_of_another_driver_makes_no_claim_unreadable(written: Any) -> None:
    result = a_result("gpu", driver=GPU) | {"consumedCapacity": {"slots": written}}
    both = [a_result(slots="2"), result]
    claim = a_claim(requests=[a_request(), a_request("gpu", name="gpu")], results=both)

    assert claim_cost(claim, world().facts.catalog) == amounts(gpu=1, onvif=2)


def test_capacity_may_be_named_with_the_drivers_domain() -> None:
    result = a_result() | {"consumedCapacity": {"moorage.dev/slots": "2"}}

    assert claim_cost(a_claim(results=[result]), world().facts.catalog) == amounts(onvif=2)


@pytest.mark.parametrize(
    ("requests", "counted"),
    [
        ([a_request()], True),
        ([a_request("net")], False),
        ([a_request("net"), a_request("gpu")], True),
        ([a_choice(a_request("net"), a_request())], True),
        ([a_request(adminAccess=True)], False),
        ([], False),
    ],
)
def test_claim_is_accounted_if_any_part_is(requests: list[Any], counted: bool) -> None:
    assert is_accounted(a_claim(requests=requests), world().facts.catalog) is counted


def test_a_device_of_ours_is_charged_though_its_class_is_gone() -> None:
    """With the Configuration goes the class; who holds the device does not hold it for nothing."""
    requests, catalog = [a_request("gone")], world().facts.catalog
    held = a_claim(requests=requests, results=[a_result(slots="2", device="unheard-of")])
    lent = a_claim(requests=requests, results=[a_result(adminAccess=True)])
    another = a_claim(requests=requests, results=[a_result(driver=GPU)])

    assert (claim_cost(held, catalog), is_accounted(held, catalog)) == (amounts(gone=2), True)
    for claim in (lent, another, a_claim(requests=requests)):
        assert (claim_cost(claim, catalog), is_accounted(claim, catalog)) == (NO_CHARGES, False)


def test_a_device_of_ours_is_free_if_its_class_says_so() -> None:
    found = world()
    found.put_class(a_class("gone", labels={"moorage.dev/accounted": "false"}))
    held = a_claim(requests=[a_request("gone")], results=[a_result()])

    assert not is_accounted(held, found.facts.catalog)


@pytest.mark.parametrize(
    ("made", "counted"),
    [
        (a_class("net"), None),
        (a_class("net", labels={"moorage.dev/accounted": "true"}), "net"),
        (a_class("gpu", labels={"moorage.dev/accounted": "false"}), None),
        (our_class("udev", labels={"moorage.dev/accounted": "false"}), None),
        (our_class("udev", labels={"moorage.dev/accounted": "perhaps"}), "udev"),
        (a_class("onvif-aaaaaa", configuration="onvif"), "onvif"),
    ],
)
def test_class_is_counted_as_its_label_its_maker_or_a_queue_says(
    made: Any, counted: str | None
) -> None:
    found = world()

    found.put_class(made)

    assert found.facts.catalog.accounted_key(made.name) == counted


def test_all_devices_of_an_instances_class_are_that_instances() -> None:
    found = world()
    found.put_class(a_class("onvif-aaaaaa", configuration="onvif"))
    request = a_request("onvif-aaaaaa", allocationMode="All")

    assert claim_cost(a_claim(requests=[request]), found.facts.catalog) == amounts(onvif=1)


def test_all_devices_of_a_foreign_class_are_those_of_its_driver() -> None:
    found = world()
    claim = a_claim(requests=[a_request("gpu", allocationMode="All")])
    assert claim_cost(claim, found.facts.catalog) == amounts(gpu=5)

    for expression, most in [
        (f'device.driver == "{GPU}"', 2),
        (f'device.driver == "{GPU}" && device.attributes["x"].y', 2),
        (f'device.driver == "{GPU}" || true', 5),
        (f'device.driver == "{GPU}" && true || true', 5),
        (f'"{GPU}" == device.driver', 5),
        ('device.driver == "a" + "b"', 5),
    ]:
        spec = {"selectors": [{"cel": {"expression": expression}}]}
        found.put_class(a_class("gpu", spec=spec))

        assert claim_cost(claim, found.facts.catalog) == amounts(gpu=most), expression


def test_no_claim_gets_more_devices_than_the_api_has_room_for() -> None:
    found = world()
    found.put_slice(a_slice("many", *[("onvif", f"onvif-{n}") for n in range(99)], allNodes=True))
    claim = a_claim(requests=[a_request(allocationMode="All")])

    assert claim_cost(claim, found.facts.catalog) == amounts(onvif=32)
    found.delete_slice("many")
    assert claim_cost(claim, found.facts.catalog) == amounts(onvif=2)


# Requests of pods.


def legacy(found: World) -> World:
    found.put_configuration(ResourceKey("cam"))
    found.put_instance(InstanceView("cam-8120fe", ResourceKey("cam")))
    return found


@pytest.mark.parametrize(
    ("resource", "key"),
    [
        ("akri.sh/cam", "cam"),
        ("akri.sh/cam-8120fe", "cam"),
        ("akri.sh/cam-000000", None),
        ("akri.sh/onvif", "onvif"),
        ("deviceclass.resource.kubernetes.io/gpu", "gpu"),
        ("deviceclass.resource.kubernetes.io/net", None),
        ("example.com/gpu", None),
    ],
)
def test_resource_is_looked_up_and_never_guessed(resource: str, key: str | None) -> None:
    catalog = legacy(world()).facts.catalog
    pod = a_pod(requests={resource: "2"})

    expected = amounts(**{key: 2}) if key else NO_CHARGES
    assert asked_cost(pod, catalog) == expected
    assert granted_cost(pod, catalog) == (expected if "akri.sh/" in resource else NO_CHARGES)


def test_configuration_counts_as_long_as_one_namespace_has_it() -> None:
    found = legacy(world())
    found.put_configuration(ResourceKey("cam"))
    catalog = found.facts.catalog

    found.delete_configuration(ResourceKey("cam"))
    assert catalog.accounted_resource("akri.sh/cam") == "cam"
    found.delete_configuration(ResourceKey("cam"))
    assert catalog.accounted_resource("akri.sh/cam") == "cam", "its Instance is still there"
    assert catalog.accounted_resource("akri.sh/cam-8120fe") == "cam"
    found.delete_instance("cam-8120fe")
    assert catalog.accounted_resource("akri.sh/cam") is None
    assert catalog.accounted_resource("akri.sh/cam-8120fe") is None


def test_instance_that_changes_its_configuration_leaves_nothing_behind() -> None:
    found = world()
    for configuration in ("cam", "mic", "mic"):
        found.put_instance(InstanceView("cam-8120fe", ResourceKey(configuration)))
    catalog = found.facts.catalog

    assert catalog.accounted_resource("akri.sh/cam") is None
    assert catalog.accounted_resource("akri.sh/mic") == "mic"
    assert catalog.accounted_resource("akri.sh/cam-8120fe") == "mic"
    found.delete_instance("cam-8120fe")
    found.delete_instance("cam-8120fe")
    assert catalog.accounted_resource("akri.sh/mic") is None


def test_pod_is_charged_while_instances_of_a_deleted_configuration_are_held() -> None:
    found = legacy(world())
    pod = a_pod(requests={"akri.sh/cam": "2"}, queue="q", node="n")
    found.put_pod(pod)

    def usage() -> Charges:
        return found.ledger.usage.of(QueueName("q"))

    found.delete_configuration(ResourceKey("cam"))
    assert usage() == amounts(cam=2)
    found.delete_instance("cam-8120fe")
    assert usage() == NO_CHARGES
    found.put_instance(InstanceView("cam-8120fe", ResourceKey("cam")))
    assert usage() == amounts(cam=2)


def test_legacy_resource_of_a_class_that_is_not_counted_is_not_either() -> None:
    found = legacy(world())

    found.put_class(a_class("cam", labels={"moorage.dev/accounted": "false"}))

    assert found.facts.catalog.accounted_resource("akri.sh/cam-8120fe") is None


def test_of_two_classes_with_one_extended_resource_the_newer_counts() -> None:
    found = world()
    spec = {"extendedResourceName": "example.com/x"}
    found.put_class(a_class("gpu", created="2026-01-01T00:00:00Z", spec=spec))
    found.put_class(our_class("udev", created="2026-01-02T00:00:00Z", spec=spec))
    found.put_class(our_class("onvif", created="2026-01-02T00:00:00Z", spec=spec))

    assert found.facts.catalog.accounted_resource("example.com/x") == "onvif"
    found.delete_class(our_class("onvif").name)
    assert found.facts.catalog.accounted_resource("example.com/x") == "udev"


def test_requests_that_a_claim_covers_are_charged_through_the_claim() -> None:
    status = {
        "extendedResourceClaimStatus": {
            "resourceClaimName": "made",
            "requestMappings": [{"containerName": "main", "resourceName": "akri.sh/onvif"}],
        }
    }
    pod = a_pod(requests={"akri.sh/onvif": 1, "akri.sh/udev": 1}, status=status)

    assert granted_cost(pod, world().facts.catalog) == amounts(udev=1)
    assert pod.claim_names == ("made",)
