"""A charge outlives the DeviceClass of its Instance, as long as the device does."""

from __future__ import annotations

from scheduler_plugin.accounting.world import World
from scheduler_plugin.objects.amounts import NO_CHARGES, Charges, ResourceKey
from scheduler_plugin.objects.claims import ClassName
from scheduler_plugin.objects.devices.devices import InstanceView
from scheduler_plugin.objects.names import Reason
from tests.scheduler_plugin.builders import (
    a_claim,
    a_pod,
    a_queue,
    a_request,
    a_slice,
    a_world,
    amounts,
    an_allocated_claim,
    our_class,
    put,
    refusal,
    usage,
)

NAME = ClassName("onvif-8120fe")
OF_INSTANCE = our_class(NAME, configuration="onvif")
INSTANCE = InstanceView(NAME, ResourceKey("onvif"))
PUBLISHED = a_slice("s", ("onvif", NAME))
HELD = an_allocated_claim("cam", "a", queue="vision", requests=[a_request(NAME)])
ONE = amounts(onvif=1)
LOST = amounts(**{NAME: 1})
"""Nothing says what it was, but for the class that its claim names."""


def charged(*objects: object) -> World:
    """A queue with a limit of one `onvif`, which a claim of the Instance's class has reached."""
    return a_world(a_queue(onvif=(1, 1)), OF_INSTANCE, HELD, *objects)


def test_use_stays_in_the_key_of_the_configuration_while_the_instance_is_there() -> None:
    world = charged()
    world.put_instance(INSTANCE)

    world.delete_class(NAME)

    assert usage(world, "vision") == ONE
    world.put_claim(a_claim("more"))
    found = refusal(world, a_pod("b", queue="vision", claims=["more"]))
    assert found.reason is Reason.OVER_LIMIT


def test_published_device_says_it_where_the_instance_is_gone_too() -> None:
    world = charged(PUBLISHED)
    world.put_instance(INSTANCE)

    world.delete_class(NAME)
    world.delete_instance(NAME)

    assert usage(world, "vision") == ONE


def test_whoever_starts_anew_finds_the_same() -> None:
    def started(*objects: object, instance: bool) -> Charges:
        world = a_world(HELD, a_queue(onvif=(1, 1)), *objects)
        if instance:
            world.put_instance(INSTANCE)
        return usage(world, "vision")

    assert started(instance=True) == ONE
    assert started(PUBLISHED, instance=False) == ONE
    assert started(instance=False) == LOST


def test_use_is_never_free_and_moves_to_the_key_that_is_known_later() -> None:
    world = a_world(a_queue(onvif=(1, 1)), HELD)
    seen = [usage(world, "vision")]

    put(world, PUBLISHED)
    seen.append(usage(world, "vision"))
    world.delete_slice("s")
    seen.append(usage(world, "vision"))
    world.put_instance(INSTANCE)
    seen.append(usage(world, "vision"))

    assert seen == [LOST, ONE, LOST, ONE]


def test_class_that_is_not_accounted_stays_so_for_its_instances() -> None:
    not_accounted = our_class(labels={"moorage.dev/accounted": "false"})
    world = charged(PUBLISHED, not_accounted)
    world.delete_class(NAME)
    before = usage(world, "vision")

    put(world, our_class())

    assert before == NO_CHARGES
    assert usage(world, "vision") == ONE


def test_class_of_that_name_that_others_made_makes_the_device_nobodys_gift() -> None:
    """Nothing shows the device any more, so that the class is all there is to charge it as."""
    world = charged(PUBLISHED, our_class(NAME, configuration=""))

    assert usage(world, "vision") == LOST
