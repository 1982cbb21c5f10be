"""A device of ours is charged as what it is, whoever's class selected it."""

from __future__ import annotations

from typing import Any

import pytest

from scheduler_plugin.accounting.charges.costs import (
    asked_cost,
    claim_cost,
    is_accounted,
    may_be_accounted,
)
from scheduler_plugin.accounting.freshness import awaits_extended_claim, claims_to_read
from scheduler_plugin.objects.amounts import NO_CHARGES, Charges, ResourceKey
from scheduler_plugin.objects.claims import ClassName
from scheduler_plugin.objects.devices.devices import InstanceView
from scheduler_plugin.objects.names import Reason
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
    admit,
    amounts,
    an_allocated_claim,
    our_class,
    refusal,
    their_class,
    usage,
)

OURS = 'device.driver == "moorage.dev"'
ONVIF = f'{OURS} && device.attributes["moorage.dev"].configuration == "onvif"'
UNCLEAR = 'device.driver.startsWith("moor")'
GPU = 'device.driver == "gpu.example.com"'
PUBLISHED = a_slice("s", ("onvif", "onvif-aaaaaa"), ("udev", "udev-bbbbbb"))
NOT_ACCOUNTED = {"moorage.dev/accounted": "false"}
ASKED = [a_request("cams")]
CAMERA, DISK = a_result(), a_result(device="udev-bbbbbb")
ADMIN = a_result(adminAccess=True)


def held(*results: dict[str, Any], **more: Any) -> Any:
    return an_allocated_claim("cam", "a", requests=ASKED, results=results or [CAMERA], **more)


@pytest.mark.parametrize("selector", [OURS, ONVIF, UNCLEAR, "true"])
def test_device_is_charged_by_its_configuration_whatever_class_asked_for_it(selector: str) -> None:
    world = a_world(PUBLISHED, a_queue(), their_class("cams", selector), held(queue="vision"))

    assert usage(world, "vision") == amounts(onvif=1)


def test_each_device_is_charged_by_its_own() -> None:
    claim = held(CAMERA, DISK | {"consumedCapacity": {"slots": "2"}}, ADMIN, queue="vision")
    world = a_world(PUBLISHED, a_queue(), their_class("cams", OURS), claim)

    assert usage(world, "vision") == amounts(onvif=1, udev=2)


def test_class_that_a_queue_lists_takes_nothing_from_the_configurations_limit() -> None:
    """Once per key, and the Configuration is the key: the class's name is none any more."""
    queue = a_queue(cams=(9, 9), onvif=(1, 1))
    world = a_world(PUBLISHED, queue, their_class("cams", OURS), held(queue="vision"))

    assert usage(world, "vision") == amounts(onvif=1)
    world.put_claim(a_claim("more"))
    found = refusal(world, a_pod("b", queue="vision", claims=["more"]))
    assert found.reason is Reason.OVER_LIMIT


@pytest.mark.parametrize("asked", [a_request("cams"), a_choice(a_request("net"), ASKED[0])])
def test_pod_whose_class_names_our_driver_needs_a_queue_before_anything_is_allocated(
    asked: dict[str, Any],
) -> None:
    claim = a_claim(requests=[asked])
    world = a_world(a_class("net"), their_class("cams", OURS), claim, a_queue())

    assert refusal(world, a_pod(claims=["cam"])).reason is Reason.NO_QUEUE
    assert admit(world, a_pod("b", queue="vision", claims=["cam"])).queue == "vision"


def test_what_it_costs_at_most_is_told_by_a_selector_that_names_the_configuration() -> None:
    world = a_world(PUBLISHED, their_class("cams", ONVIF), their_class("any", OURS))
    several = a_claim(requests=[a_request("cams", count=2, slots="3"), a_request("any")])
    by_resource = a_pod(requests={"deviceclass.resource.kubernetes.io/cams": "2"})

    assert claim_cost(several, world.facts.catalog) == amounts(onvif=6)
    assert asked_cost(by_resource, world.facts.catalog) == amounts(onvif=2)


def test_what_no_selector_tells_is_judged_at_bind_when_the_device_is_known() -> None:
    """Counted as every Configuration's, it would be refused for one that it does not get."""
    queue = a_queue(onvif=(1, 1), udev=(0, 0))
    pod = a_pod(queue="vision", claims=["cam"])
    world = a_world(PUBLISHED, queue, their_class("cams", OURS), a_claim(requests=ASKED))

    admit(world, pod)
    world.put_claim(held(DISK))

    assert refusal(world, pod, at_bind=True).reason is Reason.OVER_LIMIT
    world.put_claim(held(CAMERA))
    assert admit(world, pod, at_bind=True).claims[0].cost == amounts(onvif=1)


@pytest.mark.parametrize(
    ("selector", "counted"), [(OURS, True), (UNCLEAR, False), (GPU, False), ("true", False)]
)
def test_claim_of_a_class_that_may_be_anybodys_is_not_accounted_before_it_has_our_device(
    selector: str, counted: bool
) -> None:
    catalog = a_world(PUBLISHED, their_class("cams", selector)).facts.catalog

    assert is_accounted(a_claim(requests=ASKED), catalog) is counted
    assert is_accounted(held(CAMERA), catalog)
    assert not is_accounted(held(ADMIN), catalog) or counted
    assert not is_accounted(held(a_result(driver="gpu.example.com")), catalog) or counted


@pytest.mark.parametrize(
    ("selector", "read"), [(OURS, ("cam",)), (UNCLEAR, ("cam",)), (GPU, ()), (None, ("cam",))]
)
def test_at_bind_a_claim_that_may_have_our_device_is_read_before_it_is_judged(
    selector: str | None, read: tuple[str, ...]
) -> None:
    """The watch may be behind: as it was known, it had nothing that anybody counts."""
    world = a_world(a_claim(requests=ASKED))
    if selector is not None:
        world.put_class(their_class("cams", selector))
    pod = a_pod(claims=["cam"])

    assert claims_to_read(pod, world.facts) == read
    world.put_claim(held(a_result(driver="gpu.example.com"), pods=["b"]))
    assert claims_to_read(pod, world.facts) == read, "what it had before is not what it has"


@pytest.mark.parametrize(("selector", "awaited"), [(OURS, True), (UNCLEAR, True), (GPU, False)])
def test_at_bind_a_claim_made_for_an_extended_resource_is_waited_for(
    selector: str, awaited: bool
) -> None:
    world = a_world(their_class("cams", selector))
    pod = a_pod(requests={"deviceclass.resource.kubernetes.io/cams": "1"})

    assert awaits_extended_claim(pod, world.facts.catalog) is awaited


# An administrator's word.


@pytest.mark.parametrize(
    ("class_says", "configuration_says", "charged"),
    [
        ({}, {}, amounts(onvif=1)),
        (NOT_ACCOUNTED, {}, NO_CHARGES),
        ({}, NOT_ACCOUNTED, NO_CHARGES),
        ({"moorage.dev/accounted": "true"}, NOT_ACCOUNTED, amounts(onvif=1)),
    ],
)
def test_label_of_the_class_counts_then_that_of_the_configurations_class(
    class_says: dict[str, str], configuration_says: dict[str, str], charged: Charges
) -> None:
    cams = their_class("cams", ONVIF, labels=class_says)
    world = a_world(PUBLISHED, a_queue(), cams, held(queue="vision"))

    world.put_class(our_class(labels=configuration_says))

    assert usage(world, "vision") == charged
    asked = a_claim("next", requests=ASKED)
    assert is_accounted(asked, world.facts.catalog) is bool(charged)
    assert may_be_accounted(asked, world.facts.catalog) is (class_says != NOT_ACCOUNTED)
    world.put_class(our_class())
    assert usage(world, "vision") == (
        NO_CHARGES if class_says == NOT_ACCOUNTED else amounts(onvif=1)
    )


# What shows the device comes and goes.


def test_charge_follows_the_slice_and_is_never_nothing() -> None:
    world = a_world(a_queue(), their_class("cams", OURS), held(queue="vision"))
    seen = [usage(world, "vision")]

    world.put_slice(PUBLISHED)
    seen.append(usage(world, "vision"))
    world.put_slice(a_slice("newer", ("onvif", "onvif-aaaaaa")))
    world.delete_slice("s")
    seen.append(usage(world, "vision"))
    world.delete_slice("newer")
    seen.append(usage(world, "vision"))

    assert seen == [amounts(cams=1), amounts(onvif=1), amounts(onvif=1), amounts(cams=1)]


@pytest.mark.parametrize("pool", ["shared/onvif", "local/node-a/onvif"])
def test_pool_of_a_configuration_says_it_where_the_slice_is_gone(pool: str) -> None:
    """So does whoever starts anew: the allocation stands on the claim."""
    claim = held(a_result(pool=pool), a_result(pool=pool, adminAccess=True), queue="vision")
    world = a_world(a_queue(), their_class("cams", OURS), claim)

    assert usage(world, "vision") == amounts(onvif=1)


def test_instance_says_it_where_the_slice_is_gone() -> None:
    world = a_world(PUBLISHED, a_queue(), their_class("cams", OURS), held(queue="vision"))
    instance = InstanceView("onvif-aaaaaa", ResourceKey("onvif"))
    world.put_instance(instance)

    world.delete_slice("s")
    assert usage(world, "vision") == amounts(onvif=1)
    world.delete_instance(instance.name)
    assert usage(world, "vision") == amounts(cams=1)
    world.put_instance(instance)
    assert usage(world, "vision") == amounts(onvif=1)


def test_pools_and_instances_of_other_drivers_say_nothing() -> None:
    others = a_result(driver="gpu.example.com", pool="shared/onvif")
    world = a_world(a_queue(cams=(1, 1)), a_class("cams"), held(others, queue="vision"))

    assert usage(world, "vision") == amounts(cams=1)
    assert world.facts.catalog.configuration_of(held(others).devices[0]) is None


def test_class_that_names_the_configuration_says_it_where_the_slice_is_gone() -> None:
    world = a_world(a_queue(), their_class("cams", ONVIF), held(queue="vision"))

    assert usage(world, "vision") == amounts(onvif=1)


def test_name_that_a_label_has_no_room_for_is_counted_as_the_class_of_it_is() -> None:
    long, label = "c" * 64, "c" * 52 + "-1234567890"
    made = our_class(long, configuration=label)
    claim = an_allocated_claim("cam", "a", queue="vision", requests=[a_request(long)])
    world = a_world(a_queue(), made, claim, a_slice("s", (long, "onvif-aaaaaa")))

    assert usage(world, "vision") == amounts(**{label: 1})
    assert world.facts.catalog.accounted_key(ClassName(long)) == label
