"""By which counters kube-scheduler keeps the devices of rivals apart."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from driver.instances.instances import Instance
from driver.publishing.desired.counters import SETS_OF_A_DEVICE, counters_of
from driver.publishing.desired.next_publication import publish
from driver.publishing.desired.publication import Publication, Supply, publication_of
from driver.publishing.desired.slices import Features, published
from tests.driver.builders import NOW
from tests.driver.claim_builders import an_instance

FEATURES = Features(consumable_capacity=True, taints=True, counters=True)
NO_SLOTS = Features(consumable_capacity=False, taints=True, counters=True)
NO_COUNTERS = Features(consumable_capacity=True, taints=True)
NOTHING = Publication({})


def at(name: str, *nodes: str, **fields: Any) -> Instance:
    return an_instance(name, nodes=frozenset(nodes), **fields)


def shown(
    *instances: Instance, previous: Publication = NOTHING, features: Features = FEATURES
) -> Publication:
    supply = Supply(instances=instances)
    return publish(supply, previous, features, allocated=None, now=NOW)


def consumers(publication: Publication) -> Mapping[str, Any]:
    """What devices consume, by their names."""
    found = ((name, offer.body) for name, offer in publication.offers.items())
    return {name: body["consumesCounters"] for name, body in found if "consumesCounters" in body}


DISK, SSD, OTHER = (
    at("disks-aaaaaa", "/dev/sda"),
    at("ssds-bbbbbb", "/dev/sda"),
    at("x-c", "/dev/x"),
)


def test_two_rivals_consume_the_one_unit_of_their_set_and_others_nothing() -> None:
    publication = shown(DISK, SSD, OTHER)

    (found,) = publication.counter_sets
    assert found["counters"] == {"units": {"value": "1"}}
    taken = [{"counterSet": found["name"], "counters": {"units": {"value": "1"}}}]
    assert consumers(publication) == {"disks-aaaaaa": taken, "ssds-bbbbbb": taken}


def test_without_a_rival_nothing_is_counted_any_more() -> None:
    before = shown(DISK, SSD)

    after = shown(DISK, OTHER, previous=before)

    assert after.counter_sets == ()
    assert consumers(after) == {}


def test_where_the_api_server_keeps_no_counters_there_are_none() -> None:
    publication = shown(DISK, SSD, features=NO_COUNTERS)

    assert publication.counter_sets == ()
    assert consumers(publication) == {}


def test_what_only_a_stored_slice_tells_of_consumes_of_no_set_that_is_not_there() -> None:
    """Else the whole pool would be invalid until the handler of its Configuration answers."""
    stored = publication_of((o.body, o.scope) for o in shown(DISK, SSD).offers.values())
    supply = Supply(instances=(SSD,), unheard=frozenset({DISK.configuration}))

    publication = publish(supply, stored, FEATURES, allocated=None, now=NOW)

    assert publication.offers.keys() == {"disks-aaaaaa", "ssds-bbbbbb"}
    assert publication.counter_sets == ()
    assert consumers(publication) == {}


def test_a_device_that_is_away_consumes_nothing() -> None:
    publication = shown(SSD, OTHER, previous=shown(DISK, SSD))

    assert publication.absent.keys() == {"disks-aaaaaa"}
    assert consumers(publication) == {}


def test_the_set_of_two_rivals_keeps_its_name_when_they_move() -> None:
    moved = (at("disks-aaaaaa", "/dev/sdb"), at("ssds-bbbbbb", "/dev/sdb"))

    assert shown(*moved).counter_sets == shown(DISK, SSD).counter_sets


def test_a_device_with_more_kinds_of_rivals_than_sets_is_left_to_prepare() -> None:
    group = at("group-aaaaaa", "/dev/a", "/dev/b", "/dev/c")
    parts = [at(f"part{node}-bbbbbb", f"/dev/{node}") for node in "abc"]

    publication = shown(group, *parts)

    assert len(consumers(publication)["group-aaaaaa"]) == SETS_OF_A_DEVICE
    assert len(publication.counter_sets) == SETS_OF_A_DEVICE


INSTANCES = st.lists(
    st.builds(
        lambda configuration, nodes, capacity: (configuration, nodes, capacity),
        st.sampled_from("abcd"),
        st.frozensets(st.sampled_from("uvw"), min_size=1, max_size=2),
        st.integers(1, 3),
    ),
    max_size=5,
    unique_by=lambda each: each[0],
)


@given(INSTANCES, st.sampled_from([FEATURES, NO_SLOTS]))
def test_the_scheduler_gives_what_is_compatible_and_nothing_else(
    some: list[tuple[str, frozenset[str], int]], features: Features
) -> None:
    instances = [
        an_instance(f"{name}-{i:06}", nodes=nodes, capacity=capacity)
        for i, (name, nodes, capacity) in enumerate(some)
    ]
    counters = counters_of(instances, features)
    units = {each["name"]: int(each["counters"]["units"]["value"]) for each in counters.sets}
    bodies = [
        (device.instance, counters.added_to(device.body, device.instance))
        for device in published(instances, features)
    ]

    def fits(given: Iterable[Mapping[str, Any]]) -> bool:
        """Whether kube-scheduler would give all of these devices."""
        taken = Counter[str]()
        for body in given:
            for each in body.get("consumesCounters", ()):
                taken[each["counterSet"]] += int(each["counters"]["units"]["value"])
        return all(taken[name] <= units[name] for name in taken)

    for one in instances:
        own = [body for instance, body in bodies if instance is one]
        assert fits(own), "one Configuration's own uses exclude each other"
        for two in instances:
            theirs = [body for instance, body in bodies if instance is two]
            if one is not two and one.nodes & two.nodes:
                exclusive = 1 in (one.capacity, two.capacity)
                assert fits([*own, *theirs]) or exclusive
                left_out = any(
                    len(counters.consumed.get((i.namespace, i.name), ())) >= SETS_OF_A_DEVICE
                    for i in (one, two)
                )
                assert not exclusive or left_out or not fits([own[0], theirs[0]])
            elif one is not two:
                assert fits([own[0], theirs[0]])
    sharing = [body for instance, body in bodies if instance.capacity > 1]
    assert fits(sharing), "users whom all Configurations let share exclude each other"
