"""What a device is known by, and who gets a name that two devices ask for."""

from __future__ import annotations

import copy
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from driver.discovery.udev.identity import (
    IDENTITIES,
    MOVE_SECONDS,
    Claimant,
    Names,
    arrival_of,
    identity_of,
)
from tests.driver.discovery.udev.views import FakeDevice

HUB = FakeDevice(
    path="/devices/pci0000:00/usb1",
    subsystem="usb",
    attributes={"idVendor": "1d6b", "idProduct": "0002", "serial": "0000:00:14.0"},
)
CAMERA = FakeDevice(
    path="/devices/pci0000:00/usb1/1-1",
    subsystem="usb",
    parent=HUB,
    attributes={"idVendor": "046d", "idProduct": "0825", "serial": "A1B2\n"},
)
INTERFACE = FakeDevice(
    path="/devices/pci0000:00/usb1/1-1/1-1:1.0",
    subsystem="usb",
    parent=CAMERA,
    attributes={"bInterfaceNumber": "00"},
)
VIDEO = FakeDevice(
    path="/devices/pci0000:00/usb1/1-1/1-1:1.0/video4linux/video3",
    subsystem="video4linux",
    node="/dev/video3",
    parent=INTERFACE,
    attributes={"index": "0"},
)
DISK = FakeDevice(
    path="/devices/pci0000:00/ata1/block/sda",
    properties={
        "ID_SERIAL": "ACME_DISK_77",
        "ID_SERIAL_SHORT": "77",
        "ID_PATH": "pci-0000:00:17.0-ata-1",
        "DEVLINKS": "/dev/disk/by-path/pci-ata-1 /dev/disk/by-id/wwn-5 /dev/disk/by-id/ata-ACME_77",
    },
)


def test_akris_identity_is_the_path_and_needs_no_other() -> None:
    assert identity_of(VIDEO, "devpath") is None


def test_a_serial_is_that_of_the_hardware_and_tells_its_functions_apart() -> None:
    assert identity_of(CAMERA, "serial") == "serial:046d:0825:A1B2/usb"
    assert identity_of(VIDEO, "serial") == "serial:046d:0825:A1B2/video4linux/interface00/index0"
    second = replace(VIDEO, attributes={"index": "1"})
    assert identity_of(second, "serial") != identity_of(VIDEO, "serial")


def test_a_serial_stays_the_same_at_another_port_and_under_another_name() -> None:
    camera = replace(CAMERA, path="/devices/pci0000:00/usb1/1-7")
    interface = replace(INTERFACE, path=f"{camera.path}/1-7:1.0", parent=camera)
    video = replace(VIDEO, path=f"{interface.path}/video4linux/video9", parent=interface)

    assert identity_of(video, "serial") == identity_of(VIDEO, "serial")


def test_udevds_and_the_kernels_word_of_a_usb_serial_are_the_same() -> None:
    told = {
        "ID_BUS": "usb",
        "ID_SERIAL": "046d_0825_A1B2",
        "ID_SERIAL_SHORT": "A1B2",
        "ID_VENDOR_ID": "046d",
        "ID_MODEL_ID": "0825",
    }

    assert identity_of(replace(VIDEO, properties=told), "serial") == identity_of(VIDEO, "serial")


def test_the_hubs_serial_is_not_that_of_a_device_without() -> None:
    nameless = replace(CAMERA, attributes={"idVendor": "046d", "idProduct": "0825"})
    told = {"ID_BUS": "usb", "ID_SERIAL": "046d_0825"}

    assert identity_of(replace(nameless, properties=told), "serial") is None
    assert identity_of(replace(INTERFACE, parent=nameless), "serial") is None


def test_partitions_of_a_disk_are_told_apart() -> None:
    partition = replace(DISK, properties={**DISK.properties, "PARTN": "2"})

    assert identity_of(DISK, "serial") == "serial:ACME_DISK_77/block"
    assert identity_of(partition, "serial") == "serial:ACME_DISK_77/block/part2"


def test_links_are_udevds_and_the_first_by_name_counts() -> None:
    assert identity_of(DISK, "by-id") == "by-id:/dev/disk/by-id/ata-ACME_77"
    assert identity_of(DISK, "by-path") == "by-path:/dev/disk/by-path/pci-ata-1"


def test_without_a_link_the_port_is_udevds_id_path() -> None:
    disk = replace(DISK, properties={"ID_PATH": "pci-0000:00:17.0-ata-1"})

    assert identity_of(disk, "by-path") == "by-path:pci-0000:00:17.0-ata-1/block"
    assert identity_of(disk, "by-id") is None


@pytest.mark.parametrize("kind", IDENTITIES)
def test_a_device_that_says_nothing_has_no_identity(kind: str) -> None:
    assert identity_of(FakeDevice(), kind) is None


@pytest.mark.parametrize(("since", "arrival"), [("17", 17), ("", 0), ("soon", 0), ("²", 0)])
def test_the_time_of_arrival_is_udevds(since: str, arrival: int) -> None:
    assert arrival_of(FakeDevice(properties={"USEC_INITIALIZED": since})) == arrival
    assert arrival_of(FakeDevice()) == 0


def test_of_two_with_one_identity_the_first_has_it_until_it_goes() -> None:
    names = Names()
    first, second = Claimant("/b", "serial:1", 5), Claimant("/a", "serial:1", 9)

    assert names.give([second, first], 0.0) == {"/b": "serial:1", "/a": "/a"}
    assert names.give([second], 1.0) == {"/a": "/a"}
    assert names.give([second, first], 2.0) == {"/b": "serial:1", "/a": "/a"}


def test_a_device_comes_back_elsewhere_under_its_name() -> None:
    names = Names()

    assert names.give([Claimant("/a", "serial:1", 0)], 0.0) == {"/a": "serial:1"}
    assert names.give([Claimant("/b", "serial:1", 0)], 0.0) == {"/b": "serial:1"}


def test_a_device_that_is_told_of_elsewhere_before_it_goes_has_its_name_when_it_went() -> None:
    names = Names()
    before, after = Claimant("/a", "serial:1", 5), Claimant("/b", "serial:1", 9)
    names.give([before], 0.0)

    assert names.give([before, after], 10.0) == {"/a": "serial:1"}
    assert names.due == 10.0 + MOVE_SECONDS
    assert names.give([before, after], 11.0) == {"/a": "serial:1"}
    assert names.due == 10.0 + MOVE_SECONDS
    assert names.give([after], 12.0) == {"/b": "serial:1"}
    assert names.due is None


def test_a_second_device_of_one_identity_is_known_by_its_path_after_a_moment() -> None:
    names = Names()
    first, second = Claimant("/a", "serial:1", 5), Claimant("/b", "serial:1", 9)
    names.give([first], 0.0)
    names.give([first, second], 10.0)
    assert names.due is not None

    assert names.give([first, second], names.due) == {"/a": "serial:1", "/b": "/b"}
    assert names.due is None
    assert names.give([second], 20.0) == {"/b": "/b"}


def test_a_device_whose_identity_changes_is_another() -> None:
    names = Names()
    names.give([Claimant("/a", None, 0), Claimant("/b", "x", 0)], 0.0)

    given = names.give([Claimant("/a", "x", 0), Claimant("/b", None, 0)], 0.0)
    assert given == {"/a": "x", "/b": "/b"}


CLAIMANTS = st.lists(
    st.builds(
        Claimant,
        st.sampled_from([f"/{i}" for i in range(6)]),
        st.sampled_from([None, "x", "y"]),
        st.integers(0, 2),
    ),
    unique_by=lambda claimant: claimant.path,
)


@given(st.lists(st.tuples(CLAIMANTS, st.sampled_from([0.5, 2 * MOVE_SECONDS])), max_size=6))
def test_nobody_is_dropped_no_name_is_given_twice_and_who_stays_keeps_his(
    steps: list[tuple[list[Claimant], float]],
) -> None:
    names, other, now = Names(), Names(), 0.0
    before: dict[str, tuple[str | None, str]] = {}
    for claimants, passed in steps:
        now += passed
        given = names.give(claimants, now)

        assert other.give(reversed(claimants), now) == given
        assert len(set(given.values())) == len(given)
        for claimant in claimants:
            identity, name = before.get(claimant.path, (None, ""))
            if claimant.path in before and claimant.identity == identity:
                assert given[claimant.path] == name
            if claimant.path not in given:
                assert claimant.identity in given.values()
                assert names.due is not None
                assert now < names.due <= now + MOVE_SECONDS
            else:
                assert given[claimant.path] in (claimant.path, claimant.identity)
        before = {c.path: (c.identity, given[c.path]) for c in claimants if c.path in given}

        later = Names.give(copy.deepcopy(names), claimants, now + MOVE_SECONDS)
        assert sorted(later) == sorted(claimant.path for claimant in claimants)
