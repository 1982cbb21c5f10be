"""Names of Instances, where the hashes of devices collide."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import get_args, get_type_hints

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from driver.api import ConfigurationName, InstanceName
from driver.devices import Device, device_digest, device_hash
from driver.handlers.status_entries import LONGEST_MESSAGE
from driver.instances.instances import instances_of
from driver.instances.names import (
    ANOTHER_NODES,
    DIGITS,
    Candidate,
    Collision,
    TakenNames,
    candidate,
    collision_sentence,
    name_devices,
)
from driver.running.node_settings import NodeSettings
from tests.driver.builders import NODE, a_configuration, a_device
from tests.driver.colliding_devices import COLLIDING

CAMERA = ConfigurationName("camera")


def crowded(ids: Iterable[str], taken: TakenNames | None = None) -> dict[str, InstanceName]:
    """Names by id, where nearly all hashes collide: they have four bits."""
    devices = [Candidate(id_, digest(id_), device_hash(id_, None)[:1]) for id_ in ids]
    hashes, collisions = name_devices(CAMERA, devices, taken or TakenNames())
    assert {c.device for c in collisions} == {d.id for d in devices if d.digest not in hashes}
    return {
        d.id: InstanceName(f"{CAMERA}-{hashes[d.digest]}") for d in devices if d.digest in hashes
    }


def digest(device_id: str) -> str:
    return device_digest(device_id, None)


def stored(names: Mapping[str, InstanceName]) -> dict[InstanceName, str | None]:
    return {name: digest(device_id) for device_id, name in names.items()}


some_ids = st.sets(st.sampled_from([f"camera{i}" for i in range(12)]), max_size=8)


def test_of_two_devices_of_one_hash_the_second_is_no_instance() -> None:
    first, second = COLLIDING
    named = instances_of((), map(a_device, COLLIDING), a_configuration("camera"), NODE)

    (instance,), (collision,) = named
    assert instance.properties["UDEV_DEVPATH"] == first
    assert instance.name == f"camera-{device_hash(first, None)}"
    assert (collision.device, collision.taken) == (second, instance.name)


@pytest.mark.parametrize(("digits", "longer"), [(6, 8), (8, 12), (12, 16)])
def test_devices_that_are_left_out_are_named_with_the_value_that_mends_it(
    digits: int, longer: int
) -> None:
    taken = InstanceName("camera-21aecc")
    two = [Collision(f"/dev/{name}", taken) for name in ("b", "a")]

    assert collision_sentence((), digits) == ""
    assert collision_sentence(two[:1], digits).startswith("1 device is left out, since another")
    assert collision_sentence(two, digits) == (
        f"2 devices are left out, since another device with the same {digits} digits of hash has"
        ' the name: "/dev/a" (camera-21aecc), "/dev/b" (camera-21aecc). Set'
        f" --instance-hash-digits={longer} on all nodes (driver.node.instanceHashDigits: {longer}"
        " in the chart's values): they get longer names, and all others keep theirs."
    )


def test_many_devices_that_are_left_out_are_counted() -> None:
    taken = InstanceName("camera-21aecc")
    told = collision_sentence([Collision("x" * 500, taken) for _ in range(900)], 16)

    assert told.startswith("900 devices are left out")
    assert "(camera-21aecc) and 895 more. The hash cannot be longer" in told
    assert len(told) < LONGEST_MESSAGE


def test_the_value_that_a_sentence_names_is_one_of_the_setting() -> None:
    choices = get_args(
        get_args(get_type_hints(NodeSettings, include_extras=True)["instance_hash_digits"])[0]
    )
    assert tuple(map(int, choices)) == DIGITS


def test_longer_hashes_tell_them_apart_and_keep_the_name_that_is_there() -> None:
    first, second = COLLIDING
    known: dict[InstanceName, str | None] = {
        InstanceName(f"camera-{device_hash(first, None)}"): digest(first)
    }
    instances, collisions = instances_of(
        (), map(a_device, COLLIDING), a_configuration("camera"), NODE, TakenNames(known, digits=8)
    )

    assert collisions == ()
    hashes = {i.properties["UDEV_DEVPATH"]: i.hash for i in instances}
    assert hashes == {first: device_hash(first, None), second: device_hash(second, None, 8)}
    assert len(hashes[second]) == 8


@settings(max_examples=60)
@given(some_ids)
def test_no_two_devices_have_one_name_and_every_name_is_given(ids: set[str]) -> None:
    names = crowded(ids)

    assert len(set(names.values())) == len(names)
    assert len(names) == len({device_hash(id_, None)[:1] for id_ in ids})
    assert names == crowded(sorted(ids, reverse=True))


@settings(max_examples=60)
@given(some_ids, some_ids)
def test_names_last_whoever_comes_and_goes(before: set[str], after: set[str]) -> None:
    names = crowded(before)

    for taken in (
        TakenNames(stored(names)),
        TakenNames(current={digest(i): n for i, n in names.items()}),
    ):
        later = crowded(after, taken)
        stay = before & after & names.keys()
        assert {i: later[i] for i in stay} == {i: names[i] for i in stay}
    assert set(crowded(after - before, TakenNames(stored(names))).values()).isdisjoint(
        names.values()
    )


@settings(max_examples=60)
@given(some_ids, some_ids)
def test_what_is_stored_wins_over_what_was_meant(meant: set[str], others: set[str]) -> None:
    """Another node was faster."""
    mine, theirs = crowded(meant), crowded(others)

    names = crowded(meant, TakenNames(stored(theirs), {digest(i): n for i, n in mine.items()}))

    assert {i: names[i] for i in meant & theirs.keys()} == {
        i: theirs[i] for i in meant & theirs.keys()
    }
    assert all(stored(theirs).get(n, digest(i)) == digest(i) for i, n in names.items())


def test_an_instance_that_does_not_say_its_device_is_the_first_one_s() -> None:
    first, second = COLLIDING
    name = InstanceName(f"camera-{device_hash(first, None)}")

    devices = [candidate(Device(id_), None) for id_ in COLLIDING]
    hashes, collisions = name_devices(CAMERA, devices, TakenNames({name: None}))

    assert hashes == {digest(first): device_hash(first, None)}
    assert [c.device for c in collisions] == [second]


def test_a_name_of_another_node_s_instance_is_not_given() -> None:
    taken = TakenNames({InstanceName(f"camera-{device_hash('foo0', None)}"): ANOTHER_NODES})

    hashes, collisions = name_devices(CAMERA, [candidate(Device("foo0"), None)], taken)

    assert hashes == {}
    assert [c.device for c in collisions] == ["foo0"]
