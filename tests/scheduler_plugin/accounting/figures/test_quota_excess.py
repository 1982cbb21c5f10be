"""Quotas that are more than the devices that there are, once they have been for a while."""

from __future__ import annotations

from typing import Any

import pytest

from scheduler_plugin.accounting.figures.queue_status import (
    StatusInputs,
    queue_object,
    queue_status,
)
from scheduler_plugin.accounting.figures.quota_excess import LASTING_SECONDS, QuotaExcess
from scheduler_plugin.accounting.world import World
from scheduler_plugin.objects.amounts import ResourceKey
from scheduler_plugin.objects.devices.devices import InstanceView, SliceView, slice_view
from scheduler_plugin.objects.names import Queue, QueueName
from tests.scheduler_plugin.builders import (
    NOW,
    a_queue,
    a_queue_object,
    a_slice,
    a_world,
    our_class,
    their_class,
)

ONVIF = ResourceKey("onvif")
GPU = "gpu.example.com"
KIND = "QuotaExceedsDevices"


def put_devices(world: World, *capacities: int) -> None:
    """Instances of the Configuration onvif, and no others."""
    for instance in world.facts.catalog.instances():
        world.delete_instance(instance.name)
    for number, capacity in enumerate(capacities):
        world.put_instance(InstanceView(f"onvif-{number}", ONVIF, ("node-a",), capacity))


def scene(*queues: Queue, capacities: tuple[int, ...] = ()) -> World:
    world = a_world(*queues)
    world.put_class(our_class("onvif"))
    world.put_configuration(ONVIF)
    put_devices(world, *capacities)
    return world


def told(world: World) -> dict[str, str]:
    """What is said of each queue once it has lasted."""
    excess = QuotaExcess(world)
    excess.look(0.0)
    excess.look(LASTING_SECONDS)
    found = {queue.name: excess.of(queue.name) for queue in world.facts.tree}
    return {str(name): one.lasting for name, one in found.items() if one is not None}


def test_a_quota_of_a_measure_is_held_against_the_absence_of_all_devices_of_its_driver() -> None:
    """How much a device may be divided, and for which class, is not known."""
    measure = {"measure": {"capacity": "memory"}, "quota": "40Gi"}
    world = scene(
        a_queue("by-driver", resources=[{"name": "m", "driver": GPU, **measure}]),
        a_queue("by-class", resources=[{"name": "n", "deviceClass": "gpu", **measure}]),
    )

    assert told(world) == {
        "by-driver": f"Its quota of m is 40Gi, and no device of driver {GPU} is published.",
        "by-class": 'Its quota of n is 40Gi, and there is no DeviceClass or Configuration "gpu".',
    }
    world.put_class(their_class("gpu", f"device.driver == '{GPU}'"))
    world.put_slice(a_gpu_slice())
    assert told(world) == {}


def a_gpu_slice() -> SliceView:
    spec = {"driver": GPU, "pool": {"name": "a"}, "nodeName": "a", "devices": [{"name": "gpu"}]}
    return slice_view({"metadata": {"name": "gpus"}, "spec": spec})


def test_a_quota_is_held_against_the_uses_of_all_devices() -> None:
    queues = a_queue("more", onvif=(8, 9)), a_queue("none", onvif=(0, 99))

    assert told(scene(*queues, capacities=(1, 3))) == {
        "more": "Its quota of onvif is 8, and the published devices have 4 uses in all."
    }
    assert told(scene(*queues, capacities=(1, 7))) == {}


def test_where_no_device_is_published_it_is_said_so() -> None:
    assert told(scene(a_queue("vision", onvif=(1, 1)))) == {
        "vision": "Its quota of onvif is 1, and no device of onvif is published."
    }


def test_where_there_is_no_such_class_it_is_said_so() -> None:
    assert told(scene(a_queue("vision", camera=(1, 1)))) == {
        "vision": 'Its quota of camera is 1, and there is no DeviceClass or Configuration "camera".'
    }


def test_of_a_measure_it_is_not_known_how_much_there_is() -> None:
    measured = {"name": "memory", "driver": GPU, "measure": {"capacity": "memory"}}

    found = scene(a_queue("vision", resources=[{**measured, "quota": "80Gi"}]))
    assert "no device of driver gpu.example.com is published" in told(found)["vision"]

    device = {"name": "small", "capacity": {"memory": {"value": "1Gi"}}}
    spec = {"driver": GPU, "pool": {"name": "a"}, "nodeName": "a", "devices": [device]}
    found.put_slice(slice_view({"metadata": {"name": "s"}, "spec": spec}))
    assert told(found) == {}


def test_quotas_of_one_level_count_together() -> None:
    """A queue that does not list the class has its children's quotas for its own."""
    queues = (
        a_queue("left"),
        *(a_queue(f"left-{number}", parent="left", onvif=(2, -1)) for number in range(2)),
        a_queue("right", onvif=(3, -1)),
    )

    assert told(scene(*queues, capacities=(4,))) == {
        "right": 'The quotas of onvif of queues "left", "right" are 7 in all,'
        " and the published devices have 4 uses in all."
    }
    assert told(scene(*queues, capacities=(7,))) == {}


def test_of_many_queues_some_are_named() -> None:
    queues = [a_queue(f"q{number}", onvif=(1, 1)) for number in range(5)]

    found = told(scene(*queues, capacities=(2,)))

    assert found.keys() == {queue.name for queue in queues}
    assert 'of queues "q0", "q1", "q2" and 2 more are 5 in all' in found["q4"]


def test_a_parents_quota_and_its_childrens_are_two_levels() -> None:
    queues = a_queue("root", onvif=(4, 4)), a_queue("leaf", parent="root", onvif=(4, 4))

    assert told(scene(*queues, capacities=(4,))) == {}


def test_all_that_there_is_is_never_too_much() -> None:
    queues = a_queue("all", onvif=(-1, -1)), a_queue("some", onvif=(2, 2))

    assert told(scene(*queues, capacities=(2,))) == {}


@pytest.mark.parametrize(
    ("expression", "devices", "said"),
    [
        (f'device.driver == "{GPU}"', 0, f"no device of driver {GPU} is published."),
        # One device may be given to many claims: only CEL and the device tell to how many.
        (f'device.driver == "{GPU}"', 1, ""),
        ("device.attributes['a'].b", 0, ""),
    ],
)
def test_of_other_drivers_it_is_known_that_there_is_no_device(
    expression: str, devices: int, said: str
) -> None:
    world = a_world(a_queue("vision", gpu=(8, 8)), their_class("gpu", expression))
    if devices:
        world.put_slice(a_slice("gpus", ("", ""), driver=GPU, nodeName="node-a"))

    found = told(world)

    assert found == ({"vision": f"Its quota of gpu is 8, and {said}"} if said else {})


# Devices come and go.


def test_nothing_is_told_until_it_has_lasted() -> None:
    world = scene(a_queue("vision", onvif=(2, 2)))
    excess, vision = QuotaExcess(world), QueueName("vision")

    assert excess.look(0.0) == {vision}
    found = excess.of(vision)
    assert found is not None
    assert found.lasting == ""
    assert found.now
    assert excess.look(LASTING_SECONDS - 1) == set()

    put_devices(world, 2)
    assert excess.look(LASTING_SECONDS) == {vision}
    put_devices(world, 1)
    excess.look(LASTING_SECONDS + 1)

    assert excess.look(LASTING_SECONDS + 30) == set(), "it lasts from its last beginning on"
    found = excess.of(vision)
    assert found is not None
    assert found.lasting == ""
    assert excess.look(2 * LASTING_SECONDS + 1) == {vision}


def condition(status: Any) -> str:
    return "".join(c["message"] for c in status["conditions"] if c["type"] == KIND)


def test_the_condition_of_the_queue_tells_it_and_a_new_leader_leaves_it() -> None:
    obj = a_queue_object("vision", onvif=(2, 2))
    found = queue_object(obj)
    world = scene(found.queue)
    excess = QuotaExcess(world)
    excess.look(0.0)

    def status(obj: dict[str, Any]) -> Any:
        inputs = StatusInputs(excess=excess.of(found.queue.name))
        return queue_status(queue_object(obj), world, NOW, inputs)

    assert condition(status(obj)) == ""
    excess.look(LASTING_SECONDS)
    told = status(obj)
    assert condition(told) == "Its quota of onvif is 2, and no device of onvif is published."

    excess = QuotaExcess(world)
    excess.look(0.0)
    assert status({**obj, "status": told}) is None, "nothing is to be written"

    put_devices(world, 2)
    excess.look(30.0)
    assert condition(status({**obj, "status": told})) == ""
