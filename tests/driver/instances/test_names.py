"""Names of Instances, where the hashes of devices collide."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from hypothesis import given, settings
from hypothesis import strategies as st

from driver.api import ConfigurationName, InstanceName, NodeName
from driver.devices import device_digest, device_hash
from driver.instances.instances import instances_of
from driver.instances.names import (
    ANOTHER_NODES,
    TakenNames,
    candidates,
    collision_sentence,
    name_devices,
)
from tests.driver.builders import NODE, a_configuration, a_device
from tests.driver.colliding_devices import COLLIDING

CAMERA = ConfigurationName("camera")


def crowded_hash(device_id: str, node: NodeName | None, attempt: int) -> str:
    """Akri's, of four bits."""
    return device_hash(device_id, node, attempt)[:1]


def crowded(ids: Iterable[str], taken: TakenNames | None = None) -> dict[str, InstanceName]:
    """Names by id, where nearly all hashes collide."""
    devices = candidates(ids, None)
    hashes, _ = name_devices(CAMERA, devices, taken or TakenNames(), crowded_hash)
    return {d.id: InstanceName(f"{CAMERA}-{hashes[d.digest]}") for d in devices}


def digest(device_id: str) -> str:
    return device_digest(device_id, None)


def stored(names: Mapping[str, InstanceName]) -> dict[InstanceName, str | None]:
    return {name: digest(device_id) for device_id, name in names.items()}


some_ids = st.sets(st.sampled_from([f"camera{i}" for i in range(12)]), max_size=8)


def test_two_devices_of_one_hash_are_two_instances() -> None:
    first, second = COLLIDING
    named = instances_of((), map(a_device, COLLIDING), a_configuration("camera"), NODE)

    names = {i.properties["UDEV_DEVPATH"]: i.name for i in named.instances}
    (collision,) = named.collisions
    assert names[first] == f"camera-{device_hash(first, None)}"
    assert (collision.device, collision.instance) == (second, names[second])
    assert collision.taken == names[first]
    assert names[second] in collision_sentence(collision)
    assert all(len(i.hash) == 6 and i.cdi_name.endswith(f"={i.hash}") for i in named.instances)
    assert len({i.device for i in named.instances}) == 2


@settings(max_examples=60)
@given(some_ids)
def test_every_device_has_a_name_of_its_own(ids: set[str]) -> None:
    names = crowded(ids)

    assert len(set(names.values())) == len(ids)
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
        assert {i: later[i] for i in before & after} == {i: names[i] for i in before & after}
        assert len(set(later.values())) == len(after)
    assert set(crowded(after - before, TakenNames(stored(names))).values()).isdisjoint(
        names.values()
    )


@settings(max_examples=60)
@given(some_ids, some_ids)
def test_what_is_stored_wins_over_what_was_meant(meant: set[str], others: set[str]) -> None:
    """Another node was faster."""
    mine, theirs = crowded(meant), crowded(others)

    names = crowded(meant, TakenNames(stored(theirs), (), {digest(i): n for i, n in mine.items()}))

    assert {i: names[i] for i in meant & others} == {i: theirs[i] for i in meant & others}
    assert len(set(names.values())) == len(meant)
    assert all(stored(theirs).get(n, digest(i)) == digest(i) for i, n in names.items())


def test_an_instance_that_does_not_say_its_device_is_the_first_one_s() -> None:
    first, second = COLLIDING
    name = InstanceName(f"camera-{device_hash(first, None)}")

    hashes, _ = name_devices(CAMERA, candidates(COLLIDING, None), TakenNames({name: None}))

    assert hashes[digest(first)] == device_hash(first, None) != hashes[digest(second)]


def test_a_name_of_another_node_s_instance_is_not_given() -> None:
    taken = TakenNames({InstanceName(f"camera-{device_hash('foo0', None)}"): ANOTHER_NODES})

    hashes, collisions = name_devices(CAMERA, candidates(["foo0"], None), taken)

    assert hashes == {digest("foo0"): device_hash("foo0", None, 1)}
    assert len(collisions) == 1


def test_two_instances_of_one_device_become_one_and_a_used_one_is_preferred() -> None:
    first = InstanceName(f"camera-{device_hash('foo0', None)}")
    second = InstanceName(f"camera-{device_hash('foo0', None, 1)}")
    both: dict[InstanceName, str | None] = {first: digest("foo0"), second: digest("foo0")}
    mine = {digest("foo0"): second}

    def name(used: tuple[InstanceName, ...], current: dict[str, InstanceName]) -> str:
        hashes, _ = name_devices(
            CAMERA, candidates(["foo0"], None), TakenNames(both, used, current)
        )
        return f"camera-{hashes[digest('foo0')]}"

    assert name((), mine) == name((), {}) == first
    assert name((second,), mine) == name((second,), {}) == second
    assert name((first, second), mine) == second
