"""A container that starts gets its claim's device where that is now, and never another's."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from local_cluster import debian, loop_devices
from local_cluster.loop_devices import LoopDevice
from tests.driver.discovery.onvif.cameras import CameraProcess
from tests.e2e.driver import lives
from tests.e2e.driver.stories import TOLD, Story
from tests.e2e.driver.test_networks import beside
from tests.e2e.driver.test_udevd import udevd

SERIAL = 'ENV{ID_SERIAL}="$attr{loop/backing_file}"'
"""What udevd says of a disk: whatever port it is plugged into, its file is its serial number."""

SCRIPT = f"""
trap 'exit 0' TERM
env | sort | grep -E 'UDEV_DEVNODE|SERVICE_URL'
test -z "$UDEV_DEVNODE" || head -n1 $UDEV_DEVNODE
echo '{TOLD}'
sleep 100000 &
wait
"""
"""Says what it has, and ends when it is told to, to be started anew."""


@pytest.fixture(autouse=True, scope="module")
def installed_udevd() -> None:
    debian.ensure_packages(debian.UDEV_PACKAGES)


def reader(story: Story, name: str) -> None:
    story.pod(name, node="node-a", container={"command": ["sh", "-c", SCRIPT]})


def restart(story: Story, pod: str) -> None:
    """Let its container end; the kubelet starts the next one, and asks nobody."""
    end = ("exec", "-n", story.namespace, pod, "--", "kill", "1")
    story.cluster.kubectl(*end, check=False)  # It may end before it has said that it did.


def restarts(story: Story, pod: str) -> int:
    count: int = story.container(pod)["restartCount"]
    return count


def reads_again(story: Story, pod: str, so_often: int = 1) -> list[str]:
    """What a container prints that was started anew."""

    def is_told() -> bool:
        return restarts(story, pod) >= so_often and TOLD in logs(story, pod)

    story.until(f"{pod} was started anew", is_told)
    return logs(story, pod).split(TOLD)[0].splitlines()


def logs(story: Story, pod: str) -> str:
    return story.cluster.kubectl("logs", "-n", story.namespace, pod).stdout


def event(story: Story, pod: str, reason: str, words: str = "") -> str:
    """The text of an Event of a pod, as soon as there is one; of its reason the beginning."""

    def found() -> list[str]:
        events = story.cluster.list("events", namespace=story.namespace)
        return [
            one["message"]
            for one in events
            if one["involvedObject"]["name"] == pod
            and one["reason"].startswith(reason)
            and words in one["message"]
        ]

    return story.until(f"{pod} has an Event {reason} {words}", found)[0]


def plug(story: Story, backing: Path) -> LoopDevice:
    """Plug the disk that is in this file."""
    disk = loop_devices.plug()
    story.disks.append(disk)
    disk.attach(backing)
    return disk


def a_disk(story: Story, name: str) -> Path:
    backing = story.folder / name
    backing.write_bytes(f"{name}\n".encode().ljust(4096, b"\0"))
    return backing


def wait_at(story: Story, disk: LoopDevice) -> None:
    """Wait until a device is published as this disk."""

    def published() -> bool:
        found = [d for d in story.devices("node-a") if not d.get("taints")]
        nodes = [d["attributes"]["UDEV_DEVNODE"]["string"] for d in found]
        return str(disk.path) in nodes

    story.until(f"{disk.path} is published", published)


def wait_given(story: Story, disk: LoopDevice | None) -> None:
    """Wait until the claim's file names this disk, or none."""
    uid = story.claim_uid()

    def named() -> bool:
        (file,) = story.cdi_files(uid, "node-a")
        devices = json.loads(file.read_text())["devices"]
        nodes = [n for d in devices for n in d["containerEdits"].get("deviceNodes", ())]
        return [n["hostPath"] for n in nodes] == ([str(disk.path)] if disk else [])

    story.until(f"the claim's file names {disk.path if disk else 'no disk'}", named)


def by_serial(story: Story) -> dict[str, Any]:
    """A Configuration of this story's disks, which are known by their files."""
    details = {"udevRules": [story.rule], "identity": "serial"}
    return lives.configuration(story, story.name, "udev", json.dumps(details), capacity=2)


@pytest.fixture
def disks(story: Story) -> Iterator[tuple[Path, Path]]:
    """Two disks of one Configuration, unplugged as yet; the claim's is the one plugged first."""
    story.cluster.apply(by_serial(story))
    with udevd(story, SERIAL):
        yield a_disk(story, "mine"), a_disk(story, "other")
        story.end()


def begin(story: Story, disk: Path) -> LoopDevice:
    """Plug it, and let a pod have it."""
    plugged = plug(story, disk)
    wait_at(story, plugged)
    story.claim()
    reader(story, "first")
    story.wait_running("first")
    assert story.read("first").splitlines()[-1] == "mine"
    return plugged


def test_a_second_pod_and_a_restarted_container_get_the_disk_where_it_is_now(
    story: Story, disks: tuple[Path, Path]
) -> None:
    mine, _ = disks
    before = begin(story, mine)

    before.detach()
    now = plug(story, mine)
    wait_given(story, now)

    told = f"{now.path}. Containers that were started before hold {before.path}: start them anew."
    event(story, "first", "Device", told)  # It moved, or was away and is back.
    reader(story, "second")
    story.wait_running("second")
    assert story.read("second").splitlines()[-1] == "mine"
    restart(story, "first")
    seen = reads_again(story, "first")
    assert (seen[0], seen[-1]) == (f"UDEV_DEVNODE={now.path}", "mine")


def test_no_pod_reads_the_disk_that_is_where_its_own_was(
    story: Story, disks: tuple[Path, Path]
) -> None:
    mine, other = disks
    before = begin(story, mine)

    before.detach()
    before.attach(other)
    wait_given(story, None)

    event(story, "first", "DeviceAway")
    assert str(before.path) in event(story, "first", "Device", f"is Instance {story.name}-")
    restart(story, "first")
    reader(story, "second")
    for pod in ("first", "second"):
        event(story, pod, "Failed", "unresolvable CDI devices")
    now = plug(story, mine)
    wait_given(story, now)
    event(story, "first", "DeviceBack", str(now.path))
    assert reads_again(story, "first")[-1] == "mine"
    story.wait_running("second")
    assert story.read("second").splitlines()[-1] == "mine"


def test_disks_that_swap_while_the_driver_is_away_are_looked_for_at_its_start(
    story: Story, disks: tuple[Path, Path]
) -> None:
    mine, other = disks
    first = begin(story, mine)
    second = plug(story, other)
    wait_at(story, second)

    with without_driver(story):
        swap(first, second, mine, other)

    wait_given(story, second)
    restart(story, "first")
    assert reads_again(story, "first")[-1] == "mine"


def test_a_container_that_starts_while_no_driver_runs_gets_its_own_disk_or_does_not_start(
    story: Story,
) -> None:
    """The link to the claim's medium is gone; containerd starts nothing without it."""
    story.cluster.apply(by_serial(story))
    mine, other = a_disk(story, "mine"), a_disk(story, "other")
    with udevd(story, f'{SERIAL}, SYMLINK+="disk/by-diskseq/$env{{DISKSEQ}}"', links=True):
        first = begin(story, mine)
        second = plug(story, other)
        wait_at(story, second)
        reader(story, "second")
        story.wait_running("second")

        with without_driver(story):
            restart(story, "second")  # Nothing has moved yet.
            assert reads_again(story, "second")[-1] == "mine"
            guard = by_sequence(first)
            swap(first, second, mine, other)
            story.until("udevd has removed the link", lambda: not guard.is_symlink())
            restart(story, "first")
            assert str(guard) in event(story, "first", "Failed", "no such file or directory")

        wait_given(story, second)
        assert reads_again(story, "first")[-1] == "mine"
        links = [by_sequence(disk) for disk in (first, second)]
        story.end()
        story.until("no link is left", lambda: not any(link.is_symlink() for link in links))


@contextmanager
def without_driver(story: Story) -> Iterator[None]:
    """No driver runs on node-a for a while."""
    driver = story.drivers.nodes["node-a"]
    driver.stop()
    try:
        yield
    finally:
        driver.start()
        driver.wait_ready()


def by_sequence(disk: LoopDevice) -> Path:
    number = Path(f"/sys/block/{disk.name}/diskseq").read_text().strip()
    return Path("/dev/disk/by-diskseq", number)


def test_disks_that_swap_while_udevd_is_dead_are_withheld_until_it_tells_of_them(
    story: Story,
) -> None:
    """Its database says that the claim's disk is where the other one is."""
    story.cluster.apply(by_serial(story))
    mine, other = a_disk(story, "mine"), a_disk(story, "other")
    with udevd(story, SERIAL):
        first = begin(story, mine)
        second = plug(story, other)
        wait_at(story, second)
    swap(first, second, mine, other)
    bystander = plug(story, a_disk(story, "third"))  # What is told of it comes last.
    wait_at(story, bystander)

    wait_given(story, None)
    event(story, "first", "DeviceAway")
    untainted = [d for d in story.devices("node-a") if not d.get("taints")]
    assert [d["attributes"]["UDEV_DEVNODE"]["string"] for d in untainted] == [str(bystander.path)]
    story.until("the Configuration tells", lambda: "run udevadm trigger" in problem(story))
    assert first.name in problem(story)
    restart(story, "first")
    event(story, "first", "Failed", "unresolvable CDI devices")

    with udevd(story, SERIAL):
        for disk in (first, second):
            Path(f"/sys/block/{disk.name}/uevent").write_text("change")
        wait_given(story, second)
        assert reads_again(story, "first")[-1] == "mine"
        story.until("there is nothing to tell", lambda: not problem(story))
        story.end()


def problem(story: Story) -> str:
    """What node-a says of the story's Configuration."""
    nodes = story.get("configuration.akri.sh", story.name).get("status", {}).get("nodes", ())
    return "".join(entry["message"] for entry in nodes if entry["name"] == "node-a")


def swap(first: LoopDevice, second: LoopDevice, mine: Path, other: Path) -> None:
    for disk in (first, second):
        disk.detach()
    first.attach(other)
    second.attach(mine)


@contextmanager
def a_camera(story: Story, address: str) -> Iterator[CameraProcess]:
    process = CameraProcess("anothers", "192.0.2.1/24", address, beside=beside(story))
    try:
        yield process
    finally:
        process.stop()


def test_a_container_that_starts_anew_gets_the_address_that_its_camera_has_now(
    story: Story, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CAMERA_UUID", "6e8b7c9a-0000-4000-8000-00000000beef")
    with a_camera(story, "192.0.2.2") as before:
        details = {"uuids": {"items": [before.uuid]}, "identity": "uuid"}
        story.cluster.apply(
            lives.configuration(story, story.name, "onvif", json.dumps(details), capacity=2)
        )
        story.claim()
        reader(story, "first")
        story.wait_running("first")
        url = "ONVIF_DEVICE_SERVICE_URL=http://{}:"
        seen = story.read("first").splitlines()
        assert any(line.startswith(url.format("192.0.2.2")) for line in seen)

    with a_camera(story, "192.0.2.3") as after:
        assert after.uuid == before.uuid
        event(story, "first", "DeviceChanged", "ONVIF_DEVICE_SERVICE_URL")
        restart(story, "first")
        seen = reads_again(story, "first")
        assert any(line.startswith(url.format("192.0.2.3")) for line in seen)
