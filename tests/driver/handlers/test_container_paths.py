"""Places in containers where handlers may put device nodes and mounts."""

from __future__ import annotations

import os

import pytest
from hypothesis import given
from hypothesis import strategies as st

from driver.devices import Device, DeviceSpec, Mount
from driver.handlers.container_paths import place_refusal


def spec_at(path: str, host_path: str = "/dev/video0") -> Device:
    return Device("d", device_specs=(DeviceSpec(path, host_path),))


def mount_at(path: str) -> Device:
    return Device("m", mounts=(Mount(path, "/srv/shelf"),))


@pytest.mark.parametrize(
    "device",
    [
        spec_at("/dev/video0"),
        spec_at("/dev/bus/usb/001/002"),
        spec_at("/dev/nullable"),
        spec_at("/dev/null", "/dev/null"),
        mount_at("/shelf"),
        mount_at("/in"),
        mount_at("/srv/shelf/maps"),
        mount_at("/var/lib/shelf"),
        mount_at("/run/shelf.sock"),
        mount_at("/var/run/shelf"),
        mount_at("/dev/shelf"),
        mount_at("/binary"),
        mount_at("/library"),
        mount_at("/tmp/x"),
        Device("plain"),
    ],
)
def test_places_of_their_own_are_given(device: Device) -> None:
    assert place_refusal(device, ()) is None


@pytest.mark.parametrize(
    ("device", "why"),
    [
        (spec_at("/bin/sh"), "is not below /dev"),
        (spec_at("/dev"), "is not below /dev"),
        (spec_at("/device"), "is not below /dev"),
        (spec_at("/dev/random"), "is /dev/random, which every container has"),
        (spec_at("/dev/null", "/dev/zero"), "is /dev/null, which every container has"),
        (spec_at("/dev/shm/x"), "is /dev/shm, which every container has"),
        (mount_at("/bin/sh"), "is in /bin, where programs and settings of containers are"),
        (mount_at("/bin"), "is in /bin"),
        (mount_at("/usr"), "is in /usr"),
        (mount_at("/usr/lib/libc.so"), "is in /usr"),
        (mount_at("/lib64/ld.so"), "is in /lib64"),
        (mount_at("/etc/passwd"), "is in /etc"),
        (mount_at("/etc/ld.so.preload"), "is in /etc"),
        (mount_at("/root/.bashrc"), "is in /root"),
        (mount_at("/var/run/secrets/kubernetes.io/serviceaccount"), "is in /var/run/secrets"),
        (mount_at("/run/secrets"), "is in /run/secrets, where secrets of containers are"),
        (mount_at("/var"), "covers or is in /var/run/secrets"),
        (mount_at("/run"), "covers or is in /run/secrets"),
        (mount_at("/var/run/moorage.dev/guards"), "is in /var/run/moorage.dev"),
        (mount_at("/dev"), "is /dev, which every container has"),
        (mount_at("/dev/shm"), "is /dev/shm, which every container has"),
    ],
)
def test_places_of_a_containers_own_take_a_setting(device: Device, why: str) -> None:
    field = "mounts[0]" if device.mounts else "device_specs[0]"
    path = (device.mounts or device.device_specs)[0].container_path
    told = place_refusal(device, ())

    assert told is not None
    assert why in told
    assert told.startswith(f'{field}.container_path "{path}" ')
    assert told.endswith("; --handler-container-paths would allow it")
    assert place_refusal(device, [path]) is None
    assert place_refusal(device, ["/*"]) is None
    assert place_refusal(device, ["/elsewhere", f"{path}x"]) == told


@pytest.mark.parametrize(
    ("path", "why"),
    [
        ("", "is no absolute path"),
        ("/", "is the root of the container"),
        ("shelf", "is no absolute path"),
        ("./shelf", "is no absolute path"),
        ("/shelf/../etc/passwd", "is no absolute path"),
        ("/shelf/.", "is no absolute path"),
        ("/shelf//maps", "is no absolute path"),
        ("/shelf//", "is no absolute path"),
        ("/shelf/", "is no absolute path"),
        ("//", "is no absolute path"),
        ("/proc/", "is no absolute path"),
        ("/shelf\0", "is no absolute path"),
        ("/proc/self/mem", "is in /proc, which is the kernel's"),
        ("/proc", "is in /proc"),
        ("/sys/fs/cgroup", "is in /sys"),
    ],
)
def test_no_setting_allows_the_kernels_places_and_paths_that_hide_where_they_lead(
    path: str, why: str
) -> None:
    for device in (mount_at(path), spec_at(path, path)):
        assert why in (place_refusal(device, ["/", "/proc", "/sys", path or "/"]) or "")


def test_the_field_is_named() -> None:
    specs = (DeviceSpec("/dev/a", "/dev/a"), DeviceSpec("/etc/b", "/dev/b"))
    mounts = (Mount("/a", "/a"), Mount("/proc/b", "/b"))

    assert "device_specs[1].container_path" in (place_refusal(Device("d", {}, (), specs), ()) or "")
    assert "mounts[1].container_path" in (place_refusal(Device("m", {}, mounts), ()) or "")


PARTS = st.sampled_from(["dev", "..", ".", "", "usr", "bin", "run", "var", "secrets", "proc", "x"])


@given(st.lists(PARTS, max_size=5))
def test_no_path_of_a_mount_leaves_its_place(parts: list[str]) -> None:
    path = "/" + "/".join(parts)
    if place_refusal(mount_at(path), ()) is None:
        path = path.removesuffix("/")
        assert os.path.normpath(path) == path
        assert not {"usr", "bin", "proc"} & {path.split("/")[1]}
        assert path not in ("/", "/var", "/run", "/var/run", "/dev")
        assert not f"{path}/".startswith(("/run/secrets/", "/var/run/secrets/"))


@given(st.lists(PARTS, max_size=5))
def test_no_path_of_a_device_node_leaves_dev(parts: list[str]) -> None:
    path = "/" + "/".join(parts)
    if place_refusal(spec_at(path), ()) is None:
        path = path.removesuffix("/")
        assert os.path.normpath(path) == path
        assert path.startswith("/dev/")
