"""Counts of devices: as many as there are, whatever came and went."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from driver.api import ConfigurationName
from driver.brokers.counts import NONE, Count, Counts
from driver.brokers.devices import Device
from tests.driver.brokers.broker_builders import NODE_A, NODE_B, a_device, count_of

NAMES = ("akri-onvif", "akri-opcua")
devices = st.one_of(
    st.none(),
    st.builds(
        lambda name, capacity, nodes: a_device(
            configuration=ConfigurationName(name), capacity=capacity, nodes=nodes
        ),
        st.sampled_from(NAMES),
        st.integers(1, 3),
        st.sampled_from([(), (NODE_A,), (NODE_A, NODE_B)]),
    ),
)


def test_a_device_may_have_a_pod_on_each_node_within_its_slots() -> None:
    assert count_of(a_device(capacity=1), a_device(capacity=9)) == Count(devices=2, most_pods=3)


def test_devices_of_another_namespace_do_not_count() -> None:
    counts, one = Counts(), a_device()
    counts.note(None, one)

    assert counts.of(one.namespace, one.configuration) == count_of(one)
    assert counts.of("other", one.configuration) == NONE


@given(st.lists(st.tuples(st.integers(0, 3), devices)))
def test_the_counts_are_those_of_the_devices_that_are_there(
    changes: list[tuple[int, Device | None]],
) -> None:
    counts, there = Counts(), dict[int, Device | None]()
    for number, after in changes:
        counts.note(there.get(number), after)
        there[number] = after

    for name in map(ConfigurationName, NAMES):
        left = [each for each in there.values() if each and each.configuration == name]
        assert counts.of("plant", name) == count_of(*left)


def test_a_device_that_gets_another_capacity_counts_anew() -> None:
    counts, before = Counts(), a_device(capacity=1)
    after = replace(before, capacity=2)
    counts.note(None, before)
    counts.note(before, after)

    assert counts.of(after.namespace, after.configuration) == count_of(after)
