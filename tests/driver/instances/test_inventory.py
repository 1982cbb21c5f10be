"""The inventory: Configurations in force, and what was heard of each."""

from __future__ import annotations

from typing import Any

from driver.api import Problem
from driver.configurations.configurations import Verdict, judge
from driver.devices import DeviceSpec
from driver.instances.inventory import Heard, Host, in_force, inventory_of
from tests.driver.builders import NODE, a_configuration_object, a_device


def a_verdict(name: str = "loop", *problems: Problem, uid: str | None = None) -> Verdict:
    body: dict[str, Any] = a_configuration_object(name)
    body["metadata"]["uid"] = uid or body["metadata"]["uid"]
    return judge(body, lambda _handler, _details: problems, unique_devices_default=True)


BROKEN = Problem("spec.discoveryHandler.discoveryDetails", "It is broken.")


def test_what_was_heard_becomes_instances() -> None:
    verdict = a_verdict()

    inventory = inventory_of([verdict], {verdict.name: Heard(verdict.uid, (a_device(),))}, NODE)

    assert [i.configuration for i in inventory.instances] == ["loop"]
    assert inventory.unheard == frozenset()


def test_devices_that_other_nodes_see_too_are_named_without_the_node() -> None:
    camera, disk = a_verdict("camera"), a_verdict("disk")
    heard = {
        camera.name: Heard(camera.uid, shared=(a_device("foo0"),)),
        disk.name: Heard(disk.uid, (a_device("foo0"),)),
    }

    inventory = inventory_of([camera, disk], heard, NODE)

    assert [i.name for i in inventory.shared] == ["camera-8120fe"]
    assert [i.configuration for i in inventory.local] == ["disk"]
    assert inventory.local[0].hash != "8120fe"


def test_instances_are_told_by_their_device_nodes_or_by_where_their_paths_lead() -> None:
    disk, link = a_verdict("disk"), a_verdict("link")
    by_id = DeviceSpec("/dev/disk", "/dev/disk/by-id/x")
    heard = {
        disk.name: Heard(disk.uid, (a_device("sdb", nodes=("b8:16",)),)),
        link.name: Heard(link.uid, (a_device("one", device_specs=(by_id,)),)),
    }
    led = {"/dev/disk/by-id/x": ("/dev/sdb", "b8:16")}

    inventory = inventory_of([disk, link], heard, NODE, host=Host(led.__getitem__))

    assert [i.nodes for i in inventory.instances] == [
        {"/dev/sdb", "b8:16"},
        {"/dev/disk/by-id/x", "/dev/sdb", "b8:16"},
    ]


def test_an_empty_answer_is_an_answer() -> None:
    verdict = a_verdict()

    inventory = inventory_of([verdict], {verdict.name: Heard(verdict.uid, ())}, NODE)

    assert inventory.instances == ()
    assert inventory.unheard == frozenset()


def test_no_answer_yet_is_unheard() -> None:
    verdict = a_verdict()

    assert inventory_of([verdict], {}, NODE).unheard == {verdict.name}


def test_what_is_heard_in_part_is_known_and_unheard() -> None:
    verdict = a_verdict()
    heard = {verdict.name: Heard(verdict.uid, (a_device(),), complete=False)}

    inventory = inventory_of([verdict], heard, NODE)

    assert [i.configuration for i in inventory.local] == ["loop"]
    assert inventory.unheard == {"loop"}
    assert inventory.configurations.keys() == {"loop"}


def test_an_edit_that_breaks_a_configuration_makes_it_unheard_and_leaves_the_others() -> None:
    broken, sound = a_verdict("loop", BROKEN), a_verdict("usb")
    heard = {v.name: Heard(v.uid, (a_device(),)) for v in (broken, sound)}

    inventory = inventory_of([broken, sound], heard, NODE)

    assert inventory.unheard == {"loop"}
    assert [i.configuration for i in inventory.instances] == ["usb"]
    assert [c.name for c in in_force([broken, sound])] == ["usb"]


def test_the_answer_for_a_predecessor_of_the_same_name_is_not_taken() -> None:
    recreated = a_verdict(uid="new")

    inventory = inventory_of([recreated], {recreated.name: Heard("old", (a_device(),))}, NODE)

    assert inventory.unheard == {"loop"}
