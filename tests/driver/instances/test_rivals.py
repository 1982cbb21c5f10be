"""Which Instances of several Configurations are one device."""

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from driver.devices import DeviceSpec
from driver.instances.instances import Instance
from driver.instances.inventory import Inventory
from driver.instances.rival_sentences import rival_sentences
from driver.instances.rivals import rivalries, with_nodes
from tests.driver.claim_builders import an_instance


def a_node(name: str, *paths: str, number: str = "", **fields: Any) -> Instance:
    """An Instance with device nodes, as its handler reports it."""
    specs = tuple(DeviceSpec(path, path) for path in paths)
    nodes = frozenset({number} if number else ())
    return an_instance(name, device_specs=specs, nodes=nodes, **fields)


def found(*configurations: list[Instance]) -> list[tuple[str, ...]]:
    """The names of those that exclude each other."""
    instances = [i for those in configurations for i in with_nodes(those)]
    return [tuple(i.name for i in rivalry.instances) for rivalry in rivalries(instances)]


def test_instances_of_two_configurations_at_one_node_are_rivals() -> None:
    disks = [a_node("disks-a", "/dev/sda"), a_node("disks-b", "/dev/sdb")]
    ssds = [a_node("ssds-b", "/dev/sdb"), a_node("ssds-c", "/dev/sdc")]

    assert found(disks, ssds) == [("disks-b", "ssds-b")]


def test_a_path_of_several_spellings_is_one() -> None:
    assert found([a_node("a-a", "/dev//sda")], [a_node("b-b", "/dev/x/../sda")]) == [("a-a", "b-b")]


def test_a_link_is_what_it_leads_to() -> None:
    (link,) = with_nodes([a_node("a-a", "/dev/disk/by-id/x")], lambda _: ["b8:0", "/dev/sda"])
    (number,) = with_nodes([a_node("b-b", "/dev/mine", number="b8:0")])
    (path,) = with_nodes([a_node("c-c", "/dev/sda")])

    names = [[i.name for i in each.instances] for each in rivalries([path, number, link])]
    assert names == [["a-a", "b-b"], ["a-a", "c-c"]]


def test_a_group_is_the_rival_of_each_of_its_functions_which_are_none() -> None:
    camera = [a_node("camera-a", "/dev/bus/usb/001/004", "/dev/video0", "/dev/video1")]
    first, second = [a_node("v-b", "/dev/video0")], [a_node("w-c", "/dev/video1")]

    assert found(camera, first, second) == [("camera-a", "v-b"), ("camera-a", "w-c")]


def test_what_all_users_may_share_has_no_rivals() -> None:
    one, two, alone = (
        [a_node("a-a", "/dev/ttyS0", capacity=2)],
        [a_node("b-b", "/dev/ttyS0", capacity=3)],
        [a_node("c-c", "/dev/ttyS0")],
    )

    assert found(one, two) == []
    assert found(one, two, alone) == [("a-a", "b-b", "c-c")]


def test_a_control_node_that_devices_of_a_configuration_have_in_common_tells_none() -> None:
    gpus = [a_node("gpus-a", "/dev/g0", "/dev/ctl"), a_node("gpus-b", "/dev/g1", "/dev/ctl")]
    other = [a_node("other-c", "/dev/g2", "/dev/ctl")]

    assert found(gpus, other) == []


def test_the_node_of_all_virtual_machines_tells_none() -> None:
    one = [a_node("a-a", "/dev/vfio/12", "/dev/vfio/vfio")]
    two = [a_node("b-b", "/dev/vfio/13", "/dev/vfio/vfio")]

    assert found(one, two) == []


def test_each_configuration_is_told_of_the_other_and_of_the_device() -> None:
    instances = (
        *with_nodes([a_node("disks-a", "/dev/sdb", number="b8:16")]),
        *with_nodes([a_node("ssds-b", "/dev/sdb", number="b8:16")]),
    )

    inventory = Inventory({}, instances, frozenset())
    outcome = "while a claim has it through one Configuration, none gets it through the other."
    assert rival_sentences(inventory, claims=True) == {
        "disks": (
            "The device of Instance disks-a, /dev/sdb, is that of Instance ssds-b of Configuration"
            f" ssds, too: {outcome}",
        ),
        "ssds": (
            "The device of Instance ssds-b, /dev/sdb, is that of Instance disks-a of Configuration"
            f" disks, too: {outcome}",
        ),
    }


def test_of_slots_it_is_told_that_nothing_keeps_them_apart() -> None:
    instances = (*with_nodes([a_node("a-a", "/dev/sdb")]), *with_nodes([a_node("b-b", "/dev/sdb")]))

    told = rival_sentences(Inventory({}, instances, frozenset()), claims=False)

    assert told.keys() == {"a", "b"}
    assert all("nothing keeps two pods" in sentence for (sentence,) in told.values())


NODES = st.frozensets(st.sampled_from("abc"), max_size=2)
INSTANCES = st.lists(
    st.tuples(st.sampled_from("xyz"), NODES, st.integers(1, 2)), max_size=6, unique_by=repr
)


@given(INSTANCES)
def test_rivals_are_those_whom_a_claim_of_the_other_keeps_out(
    some: list[tuple[str, frozenset[str], int]],
) -> None:
    instances = [
        an_instance(f"{name}-{i:06}", nodes=nodes, capacity=capacity)
        for i, (name, nodes, capacity) in enumerate(some)
    ]

    told = {
        frozenset({one.name, two.name})
        for rivalry in rivalries(instances)
        for one in rivalry.instances
        for two in rivalry.instances
        if one.configuration != two.configuration and 1 in (one.capacity, two.capacity)
    }

    assert told == {
        frozenset({one.name, two.name})
        for one in instances
        for two in instances
        if one.configuration != two.configuration
        and one.nodes & two.nodes
        and 1 in (one.capacity, two.capacity)
    }
    assert rivalries(reversed(instances)) == rivalries(instances)
