"""Names of Instances, where the hashes of devices collide."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from hypothesis import given, settings
from hypothesis import strategies as st

from driver.api import ConfigurationName, InstanceName
from driver.devices import Device, device_digest, device_hash
from driver.instances.instances import instances_of
from driver.instances.names import (
    ANOTHER_NODES,
    Candidate,
    TakenNames,
    candidate,
    collision_sentence,
    name_devices,
)
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
    assert f"{second!r} is no Instance, since {instance.name}" in collision_sentence(collision)


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
