"""What a container gets for its devices."""

from __future__ import annotations

from driver.device_plugin.containers.responses import (
    ContainerResponse,
    Files,
    Refused,
    container_response,
)
from driver.devices import DeviceSpec, Mount
from driver.instances.instances import Instance
from tests.driver.slot_builders import CAMERA_1, CAMERA_2, a_camera


def response(*instances: Instance, **cdi_names: str) -> ContainerResponse:
    """The response, which must be one; files are there for those that have a CDI name."""
    files = {
        i.name: Files(cdi_names[i.hash], f"/links/{i.hash}")
        for i in instances
        if i.hash in cdi_names
    }
    found = container_response(instances, files)
    assert isinstance(found, ContainerResponse), found
    return found


def refusal(*instances: Instance) -> str:
    found = container_response(instances, {})
    assert isinstance(found, Refused)
    return found.sentence


def test_the_first_instance_by_name_gives_the_plain_variables() -> None:
    cameras = (a_camera(CAMERA_2, properties={"URL": "2", "B": "b"}), a_camera(CAMERA_1))

    assert response(*cameras).environment == {
        "URL": "rtsp://8120fe",
        "URL_8120FE": "rtsp://8120fe",
        "B": "b",
        "URL_A19705": "2",
        "B_A19705": "b",
    }
    assert response(*cameras) == response(*cameras[::-1])


def test_two_slots_of_one_instance_give_its_nodes_once() -> None:
    assert response(a_camera(), a_camera()) == response(a_camera())
    assert response(a_camera(), a_camera()).device_specs == (
        DeviceSpec("/dev/8120fe", "/dev/8120fe", "rw"),
    )


def test_devices_of_two_instances_are_merged() -> None:
    mounts = (Mount("/etc/cam", "/etc/cam"),)

    found = response(a_camera(CAMERA_1, mounts=mounts), a_camera(CAMERA_2))

    assert [spec.host_path for spec in found.device_specs] == ["/dev/8120fe", "/dev/a19705"]
    assert found.mounts == mounts


def test_a_node_of_two_instances_is_given_once_with_all_permissions() -> None:
    shared = [
        a_camera(name, device_specs=(DeviceSpec("/dev/vfio/vfio", "/dev/vfio/vfio", p),))
        for name, p in ((CAMERA_1, "mr"), (CAMERA_2, "w"))
    ]

    assert response(*shared).device_specs == (
        DeviceSpec("/dev/vfio/vfio", "/dev/vfio/vfio", "rwm"),
    )


def test_a_mount_of_two_instances_is_writable_if_one_needs_it() -> None:
    shared = [
        a_camera(name, mounts=(Mount("/data", "/data", read_only),))
        for name, read_only in ((CAMERA_1, False), (CAMERA_2, True))
    ]

    assert response(*shared).mounts == (Mount("/data", "/data", read_only=False),)


def test_two_things_in_one_place_are_refused_by_name() -> None:
    clash = [
        a_camera(name, device_specs=(DeviceSpec("/dev/video0", f"/dev/video{n}"),))
        for n, name in enumerate((CAMERA_1, CAMERA_2))
    ]

    assert refusal(*clash) == (
        "/dev/video0 of Instance akri-onvif-8120fe and /dev/video1 of Instance akri-onvif-a19705"
        " would both be /dev/video0 in the container"
    )


def test_what_the_runtime_would_refuse_is_refused() -> None:
    assert "permissions" in refusal(a_camera(device_specs=(DeviceSpec("/dev/x", "/dev/x", "q"),)))
    assert "absolute" in refusal(a_camera(mounts=(Mount("data", "/data"),)))


def test_properties_that_can_be_no_variables_are_left_out() -> None:
    assert response(a_camera(properties={"A B": "1", "C": "a\0b", "D": ""})).environment == {
        "D": "",
        "D_8120FE": "",
    }


def test_of_what_is_denied_nothing_is_given() -> None:
    odd = a_camera(properties={"LD_PRELOAD": "/x.so", "no_proxy": "*", "URL": "rtsp://8120fe"})

    assert response(odd) == response(a_camera())


def test_the_cdi_name_of_the_first_instance_comes_last() -> None:
    """Of two plain variables the runtime keeps the later one."""
    names = {"a19705": "moorage.dev/instance=2", "8120fe": "moorage.dev/instance=1"}

    found = response(a_camera(CAMERA_2), a_camera(CAMERA_1), **names)

    assert found.cdi_names == ("moorage.dev/instance=2", "moorage.dev/instance=1")
    assert response(a_camera()).cdi_names == ()


def test_what_is_of_the_host_is_given_by_links() -> None:
    """The kubelet keeps the answer, and the device moves."""
    specs = (DeviceSpec("/dev/a", "/dev/a", "r"), DeviceSpec("/dev/b", "/dev/b", "rw"))
    camera = a_camera(device_specs=specs, mounts=(Mount("/in", "/out"),))

    found = response(camera, **{"8120fe": ""})

    assert found.device_specs == (
        DeviceSpec("/dev/a", "/links/8120fe/device-0", "r"),
        DeviceSpec("/dev/b", "/links/8120fe/device-1", "rw"),
    )
    assert found.mounts == (Mount("/in", "/links/8120fe/mount-0"),)
    assert found.cdi_names == ()


def test_a_node_of_two_instances_is_given_by_the_link_of_the_first() -> None:
    specs = (DeviceSpec("/dev/vfio/vfio", "/dev/vfio/vfio", "r"),)
    cameras = (a_camera(CAMERA_2, device_specs=specs), a_camera(CAMERA_1, device_specs=specs))

    found = response(*cameras, **{"8120fe": "", "a19705": ""})

    assert found.device_specs == (DeviceSpec("/dev/vfio/vfio", "/links/8120fe/device-0", "r"),)
