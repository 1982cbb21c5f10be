"""From selected devices to the devices of a Configuration."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from driver.devices import Device, DeviceSpec
from driver.discovery.udev.details import UdevDetails, parse_udev_details
from driver.discovery.udev.devices import Search
from driver.discovery.udev.passthrough import Passthrough
from tests.driver.discovery.udev.views import FakeDevice


def a_search(*rules: str, fields: str = "") -> Search:
    listed = "".join(f"\n- '{rule}'" for rule in rules)
    details = parse_udev_details(f"udevRules:{listed}\n{fields}")
    assert isinstance(details, UdevDetails), details
    return Search(details)


def found(search: Search, *devices: FakeDevice) -> tuple[Device, ...]:
    for device in devices:
        search.look(device.path, device)
    return search.devices(now=0.0)


LOOP = FakeDevice(path="/devices/virtual/block/loop7", node="/dev/loop7")
HUB = FakeDevice(path="/devices/usb1", subsystem="usb", node="/dev/bus/usb/001/001")
CAMERA = FakeDevice(
    path="/devices/usb1/1-1", subsystem="usb", node="/dev/bus/usb/001/002", parent=HUB
)
INTERFACE = FakeDevice(path="/devices/usb1/1-1/1-1:1.0", subsystem="usb", parent=CAMERA)
VIDEO = FakeDevice(
    path="/devices/usb1/1-1/1-1:1.0/video4linux/video0",
    subsystem="video4linux",
    node="/dev/video0",
    parent=INTERFACE,
)
TENTH = FakeDevice(path="/devices/usb1/1-10", subsystem="usb", node="/dev/bus/usb/001/010")


def test_a_device_has_its_path_its_node_and_the_permissions() -> None:
    devices = found(a_search('KERNEL=="loop7"', fields="permissions: rw"), LOOP)

    assert devices == (
        Device(
            id="/devices/virtual/block/loop7",
            properties={
                "UDEV_DEVPATH": "/devices/virtual/block/loop7",
                "UDEV_DEVNODE": "/dev/loop7",
            },
            device_specs=(DeviceSpec("/dev/loop7", "/dev/loop7", "rw"),),
        ),
    )


def test_a_device_that_no_rule_selects_is_not_found() -> None:
    assert found(a_search('KERNEL=="loop8"', 'SUBSYSTEM=="usb"'), LOOP) == ()


def test_a_device_that_two_rules_select_is_one() -> None:
    assert len(found(a_search('KERNEL=="loop7"', 'SUBSYSTEM=="block"'), LOOP)) == 1


def test_without_a_node_it_stands_for_the_first_ancestor_that_has_one() -> None:
    [device] = found(a_search('KERNEL=="1-1:1.0"'), INTERFACE)

    assert device.id == CAMERA.path
    assert device.properties["UDEV_DEVNODE"] == CAMERA.node


def test_a_device_and_its_interface_are_one() -> None:
    assert [device.id for device in found(a_search('KERNEL=="1-1*"'), INTERFACE, CAMERA)] == [
        CAMERA.path
    ]


def test_without_any_node_there_is_only_the_path() -> None:
    lone = FakeDevice(path="/devices/thermal", subsystem="thermal")

    assert found(a_search('SUBSYSTEM=="thermal"'), lone) == (
        Device(
            id="/devices/thermal",
            properties={"UDEV_DEVPATH": "/devices/thermal"},
            nodes=("/devices/thermal",),
        ),
    )


def test_device_nodes_are_told_by_their_numbers_and_kinds() -> None:
    loop = replace(LOOP, properties={"MAJOR": "7", "MINOR": "1"})
    video = replace(VIDEO, properties={"MAJOR": "81", "MINOR": "0"})

    devices = found(a_search('KERNEL=="loop7|video0"'), loop, video)

    assert [device.nodes for device in devices] == [("c81:0",), ("b7:1",)]


def test_the_order_is_that_of_the_ids() -> None:
    search = a_search('SUBSYSTEM=="?*"')

    ids = [device.id for device in found(search, VIDEO, LOOP, TENTH, CAMERA, HUB)]

    assert ids == sorted(ids)


def test_a_group_is_the_topmost_device_with_all_nodes_below_it() -> None:
    search = a_search('KERNEL=="1-1"', 'KERNEL=="video0"', fields="groupRecursive: true")

    assert found(search, VIDEO, CAMERA) == (
        Device(
            id=CAMERA.path,
            properties={
                "UDEV_DEVPATH": CAMERA.path,
                "UDEV_DEVNODE_0": "/dev/bus/usb/001/002",
                "UDEV_DEVNODE_1": "/dev/video0",
            },
            device_specs=(
                DeviceSpec("/dev/bus/usb/001/002", "/dev/bus/usb/001/002", "rwm"),
                DeviceSpec("/dev/video0", "/dev/video0", "rwm"),
            ),
        ),
    )


def test_groups_are_told_apart_by_whole_parts_of_the_path() -> None:
    search = a_search('KERNEL=="1-1*|video0"', fields="groupRecursive: true")

    groups = {device.id: len(device.device_specs) for device in found(search, TENTH, VIDEO, CAMERA)}

    assert groups == {CAMERA.path: 2, TENTH.path: 1}


@given(st.permutations([VIDEO, CAMERA, INTERFACE, HUB, TENTH, LOOP]), st.booleans())
def test_the_order_of_looking_does_not_matter(order: list[FakeDevice], grouped: bool) -> None:
    fields = f"groupRecursive: {str(grouped).lower()}"

    first = found(a_search('KERNEL=="?*"', fields=fields), *order)

    assert first == found(a_search('KERNEL=="?*"', fields=fields), *sorted(order, key=str))


def test_only_what_changes_something_is_a_change() -> None:
    search = a_search('KERNEL=="loop7", ATTR{size}=="1"')
    small, big = replace(LOOP, attributes={"size": "1"}), replace(LOOP, attributes={"size": "2"})

    steps: list[FakeDevice | None] = [None, big, small, small, big, small, None, None]
    changes = [search.look(LOOP.path, device) for device in steps]

    assert changes == [False, False, True, False, True, True, True, False]
    assert search.devices(now=0.0) == ()


def test_another_node_at_the_same_path_is_a_change() -> None:
    search = a_search('KERNEL=="loop7"')
    found(search, LOOP)

    assert search.look(LOOP.path, replace(LOOP, node="/dev/loop8"))
    assert search.devices(now=0.0)[0].properties["UDEV_DEVNODE"] == "/dev/loop8"


def test_what_is_no_text_is_refused_and_what_was_found_stays() -> None:
    search = a_search('SUBSYSTEM=="block"')
    found(search, LOOP)

    with pytest.raises(UnicodeEncodeError):
        search.look("/devices/\udcff", FakeDevice(path="/devices/\udcff", node="/dev/x"))
    with pytest.raises(UnicodeEncodeError):
        search.look(LOOP.path, replace(LOOP, node="/dev/\udcff"))

    assert [device.id for device in search.devices(now=0.0)] == [LOOP.path]


def test_bytes_that_are_no_text_can_be_matched() -> None:
    odd = replace(LOOP, attributes={"model": "DISK\udcff"}, properties={"ID": "\udcfe"})

    assert len(found(a_search('ATTR{model}=="DISK?", ENV{ID}!="x"'), odd)) == 1


def test_it_knows_what_is_below_a_path() -> None:
    search = a_search('KERNEL=="video0"')
    found(search, VIDEO)

    assert search.has_below(CAMERA.path)
    assert not search.has_below(VIDEO.path)
    assert not search.has_below("/devices/usb")


def test_a_device_known_by_its_serial_is_the_same_at_another_path() -> None:
    serial = {"ID_SERIAL": "ACME_7", "SUBSYSTEM": "block"}
    search = a_search('SUBSYSTEM=="block"', fields="identity: serial")
    [before] = found(search, replace(LOOP, properties=serial))

    elsewhere = replace(LOOP, path="/devices/virtual/block/loop9", node="/dev/loop9")
    search.look(LOOP.path, None)
    [after] = found(search, replace(elsewhere, properties=serial))

    assert before.id == after.id == "serial:ACME_7/block"
    assert after.properties == {"UDEV_DEVPATH": elsewhere.path, "UDEV_DEVNODE": "/dev/loop9"}
    assert after.attributes == {"SUBSYSTEM": "block", "ID_SERIAL": "ACME_7"}
    assert search.unnamed() == ()


def test_devices_of_one_serial_or_none_are_all_there_and_told() -> None:
    search = a_search('SUBSYSTEM=="block"', fields="identity: serial")
    twins = [
        FakeDevice(path=f"/devices/block/{name}", properties={"ID_SERIAL": "S"}) for name in "ab"
    ]

    ids = [device.id for device in found(search, *twins, LOOP)]

    assert ids == ["/devices/block/b", LOOP.path, "serial:S/block"]
    assert sorted(search.unnamed()) == ["/devices/block/b", LOOP.path]


def test_a_disk_that_is_told_of_before_it_left_its_old_port_is_the_same() -> None:
    search = a_search('SUBSYSTEM=="block"', fields="identity: serial")
    there, here = (
        FakeDevice(path=f"/devices/block/{name}", properties={"ID_SERIAL": "S"}) for name in "ab"
    )
    [before] = found(search, there)

    [still] = found(search, here)
    assert (still.id, still.properties["UDEV_DEVPATH"]) == (before.id, there.path)
    assert search.due is not None
    search.look(there.path, None)
    [after] = search.devices(now=0.1)

    assert (after.id, after.properties["UDEV_DEVPATH"]) == (before.id, here.path)
    assert search.due is None


def test_a_changed_property_is_a_change() -> None:
    search = a_search('KERNEL=="loop7"')
    found(search, LOOP)

    assert search.look(LOOP.path, replace(LOOP, properties={"TAGS": ":a:"}))
    assert search.devices(now=0.0)[0].attributes == {"TAGS": ":a:"}


def test_a_group_tells_virtual_machines_of_each_node_and_of_its_top() -> None:
    asked = Passthrough("akri.sh/cam", vfio=True)
    details = parse_udev_details("udevRules: ['KERNEL==\"1-1|video0\"']\ngroupRecursive: true")
    assert isinstance(details, UdevDetails)

    [usb] = found(Search(details, asked), VIDEO, CAMERA)

    assert usb.properties == {
        "UDEV_DEVPATH": CAMERA.path,
        "UDEV_DEVNODE_0": CAMERA.node,
        "UDEV_DEVNODE_1": VIDEO.node,
        "USB_RESOURCE_AKRI_SH_CAM_0": "1:2",
    }


def test_a_pci_device_comes_with_its_vfio_nodes() -> None:
    card = FakeDevice(
        path="/devices/pci0000:00/0000:65:00.0", subsystem="pci", links={"iommu_group": "7"}
    )
    details = parse_udev_details("udevRules: ['SUBSYSTEM==\"pci\"']\npermissions: r")
    assert isinstance(details, UdevDetails)

    [device] = found(Search(details, Passthrough("a/b", vfio=True)), card)

    assert device.properties["PCI_RESOURCE_A_B"] == "0000:65:00.0"
    assert device.device_specs == (
        DeviceSpec("/dev/vfio/7", "/dev/vfio/7", "rwm"),
        DeviceSpec("/dev/vfio/vfio", "/dev/vfio/vfio", "rwm"),
    )


KERNELS = {"DEVTYPE": "disk", "MAJOR": "7", "MINOR": "7"}
IN_DOUBT = replace(LOOP, in_doubt=True, properties=KERNELS)


def test_what_the_kernel_says_of_a_device_in_doubt_is_believed() -> None:
    search = a_search('KERNEL=="loop7", ENV{DEVTYPE}=="disk"')

    (device,) = found(search, IN_DOUBT)

    assert (device.id, device.attributes["DEVTYPE"]) == (LOOP.path, "disk")
    assert search.withheld == ()


@pytest.mark.parametrize(
    ("rule", "fields"),
    [
        ('ENV{ID_SERIAL}=="a"', ""),
        ('ENV{ID_SERIAL}!="a"', ""),
        ('TAG=="a"', ""),
        ('TAGS=="a"', ""),
        ('KERNEL=="loop7"', "identity: serial"),
        ('KERNEL=="loop7"', "identity: by-id"),
        ('KERNEL=="loop7"', "identity: by-path"),
    ],
)
def test_a_device_in_doubt_of_which_udevd_must_tell_is_withheld(rule: str, fields: str) -> None:
    known = replace(LOOP, properties={"ID_SERIAL": "a", "TAGS": ":a:", "ID_PATH": "p"})
    search = a_search(rule, fields=fields)
    before = found(search, known)

    assert search.look(LOOP.path, IN_DOUBT)
    assert search.devices(now=1.0) == ()
    assert set(search.withheld) == {LOOP.path}
    assert not search.look(LOOP.path, IN_DOUBT)

    assert found(search, known) == before
    assert not search.withheld


def test_a_device_in_doubt_that_no_rule_can_select_is_not_withheld() -> None:
    search = a_search('ENV{ID_SERIAL}=="a", ATTR{size}=="7"', 'TAG=="a", KERNEL=="loop8"')

    assert found(search, IN_DOUBT) == ()
    assert search.withheld == ()


def test_a_device_in_doubt_that_goes_is_withheld_no_more() -> None:
    search = a_search('TAG=="a"')
    found(search, IN_DOUBT)

    assert search.look(LOOP.path, None)
    assert search.withheld == ()


def test_a_group_with_a_device_in_doubt_is_withheld_as_a_whole() -> None:
    search = a_search('ENV{ID_PATH}=="a"', fields="groupRecursive: true")
    whole = [replace(each, properties={"ID_PATH": "a"}) for each in (CAMERA, VIDEO, TENTH)]
    before = found(search, *whole)

    for doubtful in (CAMERA, VIDEO):
        search.look(doubtful.path, replace(doubtful, in_doubt=True))
        assert [device.id for device in search.devices(now=1.0)] == [TENTH.path]
        found(search, *whole)
    assert search.devices(now=2.0) == before


def test_a_device_that_is_known_by_what_it_is_has_guards() -> None:
    link = "/dev/disk/by-diskseq/9"
    disk = replace(LOOP, attributes={"diskseq": "9", "serial": "a"}, aliases=(link,))
    search = a_search('KERNEL=="loop7"', fields="identity: serial")

    assert found(search, disk)[0].guards == (link,)
    again = replace(disk, attributes={"diskseq": "10", "serial": "a"})
    assert search.look(LOOP.path, again)
    assert search.devices(now=1.0)[0].guards == ()
    assert found(search, replace(disk, attributes={"diskseq": "9"}))[0].guards == ()
    assert found(a_search('KERNEL=="loop7"'), disk)[0].guards == ()


def test_a_group_has_the_guards_of_all_in_it() -> None:
    attributes = {"idVendor": "1", "idProduct": "2", "serial": "a"}
    camera = replace(CAMERA, attributes=attributes)
    video = replace(VIDEO, parent=replace(INTERFACE, parent=camera))
    search = a_search('KERNEL=="1-1|video0"', fields="groupRecursive: true\nidentity: serial")

    assert found(search, camera, video)[0].guards == (CAMERA.node,)
