r"""Stories of the udev handler that need namespaces of their own; run by `test_namespaces`.

    unshare --net --mount --propagation private \
        python -m tests.driver.discovery.udev.in_namespaces STORY "$(readlink /proc/self/ns/net)"

udevd's events stay in its network namespace, and its rules, database and control socket in this
mount namespace, so that it neither disturbs the machine nor is disturbed.
"""

from __future__ import annotations

import asyncio
import logging
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import AsyncGenerator, Iterable, Iterator, Mapping, Sequence
from contextlib import aclosing, contextmanager
from datetime import timedelta
from pathlib import Path

from driver.devices import Device
from driver.discovery.udev import doubts
from driver.discovery.udev.details import UdevDetails, parse_udev_details
from driver.discovery.udev.handler import UdevHandler
from driver.discovery.udev.netlink import udevd_source
from driver.discovery.udev.netlink_watch import UdevSettings
from driver.discovery.udev.uevents import Source
from tests.driver.discovery.udev.loops import Loops, loops

UDEVD = Path("/usr/lib/systemd/systemd-udevd")
RULES = Path("/usr/lib/udev/rules.d")
LINKS = Path("/dev/disk")
HOUR = timedelta(hours=1)
"""What would come too late to help."""

Lists = AsyncGenerator[tuple[Device, ...], None]


def details(rule: str, fields: str = "") -> UdevDetails:
    parsed = parse_udev_details(f"udevRules: ['{rule}']\n{fields}")
    assert isinstance(parsed, UdevDetails), parsed
    return parsed


def mount(kind: str, place: Path) -> None:
    subprocess.run(["mount", "-t", kind, "none", str(place)], check=True)


@contextmanager
def udevd() -> Iterator[subprocess.Popen[bytes]]:
    daemon = subprocess.Popen([UDEVD, "--resolve-names=never"])
    try:
        deadline = time.monotonic() + 30
        while udevd_source() is not Source.UDEVD:
            assert daemon.poll() is None
            assert time.monotonic() < deadline, "udevd does not come up"
            time.sleep(0.01)
        yield daemon
    finally:
        daemon.kill()
        daemon.wait()


TOLD = 'ENV{MOORAGE_TEST}="yes", TAG+="moorage", ENV{ID_SERIAL}="S1", SYMLINK+="disk/by-id/s1"'
BACKING_FILE = 'ENV{ID_SERIAL}="$attr{loop/backing_file}", SYMLINK+="disk/by-diskseq/$env{DISKSEQ}"'
"""The file behind a device is its serial number, whatever port it is plugged into."""


def prepare(devices: Loops, told: str = TOLD) -> None:
    """Leave udevd nothing but one rule on this test's devices."""
    for place in (RULES, Path("/etc/udev/rules.d"), Path("/run")):
        if place.exists():
            mount("tmpfs", place)
    LINKS.mkdir(exist_ok=True)
    mount("tmpfs", LINKS)
    rule = f'KERNEL=="{devices.glob}", {told}\n'
    (RULES / "99-moorage.rules").write_text(rule)


async def udevd_tells() -> None:
    """What udevd adds can be matched as soon as it is added: events are its own, not the kernel's.

    No rescan comes to help, and when the kernel's event came the property would be missing.
    """
    with loops() as devices:
        prepare(devices)
        rule = details('SUBSYSTEM=="block", ENV{MOORAGE_TEST}=="yes", TAG=="moorage"')
        with udevd():
            handler = UdevHandler(UdevSettings(rescan_interval=HOUR))
            async with asyncio.timeout(30), aclosing(handler.discover(rule)) as lists:
                assert await anext(lists) == ()
                for index in range(10):
                    devices.plug(index)
                async for found in lists:
                    if len(found) == 10:
                        break
                devices.unplug_all()
                async for found in lists:
                    if not found:
                        break


async def udevd_names_devices() -> None:
    """A device is the same elsewhere; its properties, links and tags are there at first sight."""
    with loops() as devices:
        prepare(devices)
        for kind, name in (("serial", "S1/block"), ("by-id", "/dev/disk/by-id/s1")):
            rule = details(f'KERNEL=="{devices.glob}"', f"identity: {kind}")
            handler = UdevHandler(UdevSettings(rescan_interval=HOUR))
            with udevd():
                async with asyncio.timeout(30), aclosing(handler.discover(rule)) as lists:
                    await anext(lists)
                    await a_device_is_told_from_its_twin(devices, lists, f"{kind}:{name}")


async def a_device_is_told_from_its_twin(devices: Loops, lists: Lists, name: str) -> None:
    devices.plug(0)
    (first,) = await anext(lists)
    told = {key: first.attributes[key] for key in ("ID_SERIAL", "TAGS", "DEVLINKS")}
    assert told == {"ID_SERIAL": "S1", "TAGS": ":moorage:", "DEVLINKS": "/dev/disk/by-id/s1"}
    assert first.id == name

    devices.plug(1)
    assert [device.id for device in await anext(lists)] == [devices.path(1), name]
    devices.unplug(0)
    assert [device.id for device in await anext(lists)] == [devices.path(1)]
    devices.plug(2)
    twin, back = await anext(lists)
    assert (twin.id, back.id) == (devices.path(1), name)
    assert back.properties["UDEV_DEVNODE"] == f"/dev/{devices.name(2)}"
    devices.unplug_all()
    async for found in lists:
        if not found:
            break


async def udevd_goes_and_comes() -> None:
    """The handler follows: a killed udevd leaves its socket's file, and nobody sends any more."""
    with loops() as devices:
        prepare(devices)
        rule = details(f'KERNEL=="{devices.glob}"')
        handler = UdevHandler(
            UdevSettings(rescan_interval=HOUR, source_interval=timedelta(seconds=0.5))
        )
        heard: list[str] = []
        watched = logging.getLogger("driver.discovery.udev.netlink_watch")
        watched.setLevel(logging.INFO)
        watched.addHandler(Collect(heard))
        async with asyncio.timeout(60), aclosing(handler.discover(rule)) as lists:
            await anext(lists)
            with udevd():
                await until_last(heard, "source=udevd")
                devices.plug(0)
                assert len(await anext(lists)) == 1
            await until_last(heard, "source=kernel")
            devices.plug(1)
            assert len(await anext(lists)) == 2
            with udevd():
                await until_last(heard, "source=udevd")
                devices.unplug(1)
                assert len(await anext(lists)) == 1


async def what_a_dead_udevd_said_is_not_believed() -> None:
    """Two disks are swapped while udevd is dead: its database says which was where before.

    Both are withheld until udevd tells of them anew. The kernel told nothing of the third since.
    The fourth comes last, and udevd never knew it.
    """
    with disks() as (devices, files):
        handler = UdevHandler(FOLLOWING)
        async with asyncio.timeout(60), aclosing(handler.discover(by_serial(devices))) as lists:
            with udevd():
                for index in range(3):
                    devices.plug(index)
                    devices.attach(index, files[index])
                await until_shown(lists, devices, {0: "a", 1: "b", 2: "c"})
            swap(devices, files)
            devices.plug(3)
            devices.attach(3, files[3])
            shown: dict[int, str] = {}
            while 3 not in shown:
                shown = shown_at(devices, await anext(lists))
            assert shown == {2: "c", 3: devices.path(3)}, shown
            problem = handler.problem or ""
            assert [index for index in range(4) if devices.path(index) in problem] == [0, 1]

            with udevd():
                trigger(devices, 0)
                await until_shown(lists, devices, {0: "b", 2: "c", 3: devices.path(3)})
                trigger(devices, 1, 3)
                await until_shown(lists, devices, {0: "b", 1: "a", 2: "c", 3: "d"})
                assert handler.problem is None


async def a_disk_is_guarded_by_its_medium() -> None:
    """The link is udevd's: it goes when a file is attached anew, though it is the same file."""
    with disks() as (devices, files), udevd():
        devices.plug(0)
        devices.attach(0, files[0])
        handler = UdevHandler(FOLLOWING)
        async with asyncio.timeout(60), aclosing(handler.discover(by_serial(devices))) as lists:
            before = devices.sequence(0)
            await until_guarded(lists, before)
            devices.detach(0)
            devices.attach(0, files[0])
            await until_guarded(lists, devices.sequence(0))
            assert before not in os.listdir("/dev/disk/by-diskseq")


async def until_guarded(lists: Lists, link: str) -> None:
    async for found in lists:
        if [device.guards for device in found] == [(f"/dev/disk/by-diskseq/{link}",)]:
            return


async def what_a_udevd_said_that_hangs_is_not_believed() -> None:
    """Its socket is there, as it is where systemd keeps it for one that is dead."""
    doubts.PATIENCE_SECONDS = 0.5
    with disks() as (devices, files):
        handler = UdevHandler(FOLLOWING)
        async with asyncio.timeout(60), aclosing(handler.discover(by_serial(devices))) as lists:
            with udevd() as daemon:
                for index in range(2):
                    devices.plug(index)
                    devices.attach(index, files[index])
                await until_shown(lists, devices, {0: "a", 1: "b"})
                daemon.send_signal(signal.SIGSTOP)
                swap(devices, files)
                await until_shown(lists, devices, {})
                assert handler.problem
                daemon.send_signal(signal.SIGCONT)
                await until_shown(lists, devices, {0: "b", 1: "a"})
                assert handler.problem is None


def swap(devices: Loops, files: Sequence[Path]) -> None:
    for index in (0, 1):
        devices.detach(index)
    for index in (0, 1):
        devices.attach(index, files[1 - index])


async def a_start_beside_a_dead_udevd_believes_sysfs_alone() -> None:
    """What happened before nobody knows. Who asks for places needs no database."""
    with disks() as (devices, files):
        with udevd():
            for index in range(2):
                devices.plug(index)
                devices.attach(index, files[index])
            await run("udevadm", "settle")
        handler = UdevHandler(FOLLOWING)
        places = details(f'SUBSYSTEM=="block", KERNEL=="{devices.glob}"')
        async with asyncio.timeout(60), aclosing(handler.discover(places)) as lists:
            found = await anext(lists)
            assert [device.id for device in found] == [devices.path(0), devices.path(1)]
            assert "ID_SERIAL" not in found[0].attributes
        async with asyncio.timeout(60), aclosing(handler.discover(by_serial(devices))) as lists:
            assert await anext(lists) == ()
            with udevd():
                trigger(devices, 0, 1)
                await until_shown(lists, devices, {0: "a", 1: "b"})


FOLLOWING = UdevSettings(rescan_interval=HOUR, source_interval=timedelta(seconds=0.5))


@contextmanager
def disks() -> Iterator[tuple[Loops, list[Path]]]:
    """Devices, and files to attach to them: udevd calls each by its file's path."""
    with loops() as devices, tempfile.TemporaryDirectory() as folder:
        prepare(devices, BACKING_FILE)
        files = [Path(folder, name) for name in "abcd"]
        for file in files:
            file.write_bytes(bytes(4096))
        yield devices, files


def by_serial(devices: Loops) -> UdevDetails:
    rule = f'KERNEL=="{devices.glob}", ATTR{{loop/backing_file}}=="?*"'
    return details(rule, "identity: serial")


def trigger(devices: Loops, *indices: int) -> None:
    """Let the kernel tell of these again, as `udevadm trigger` does for all."""
    for index in indices:
        devices.stir(index)


async def until_shown(lists: Lists, devices: Loops, wanted: Mapping[int, str]) -> None:
    async for found in lists:
        if shown_at(devices, found) == wanted:
            return


def shown_at(devices: Loops, found: Iterable[Device]) -> dict[int, str]:
    """Which disk is where: the name of its file, or the path that stands for it."""
    names = {f"/dev/{devices.name(index)}": index for index in range(4)}
    return {
        names[device.properties["UDEV_DEVNODE"]]: device.id
        if device.id.startswith("/")
        else device.id.removesuffix("/block").rsplit("/", 1)[-1]
        for device in found
    }


class Collect(logging.Handler):
    """Keeps what is logged."""

    def __init__(self, lines: list[str]) -> None:
        super().__init__()
        self._lines = lines

    def emit(self, record: logging.LogRecord) -> None:
        self._lines.append(record.getMessage())


async def until_last(lines: list[str], text: str) -> None:
    while not lines or text not in lines[-1]:  # noqa: ASYNC110 - nothing else would tell
        await asyncio.sleep(0.01)


async def a_name_is_no_text() -> None:
    """A network device whose name is no UTF-8 is left out and told; the others are found."""
    mount("sysfs", Path("/sys"))
    await ip("link", "add", b"odd\xff", "type", "bridge")
    await ip("link", "add", "even", "type", "bridge")
    heard: list[str] = []
    logging.getLogger("driver.discovery.udev.sysfs").addHandler(Collect(heard))
    handler = UdevHandler(UdevSettings(rescan_interval=timedelta(seconds=0.05)))

    rule = details('SUBSYSTEM=="net", ATTR{bridge/stp_state}=="0"')
    async with asyncio.timeout(30), aclosing(handler.discover(rule)) as lists:
        found = await anext(lists)
        await asyncio.sleep(0.3)

    assert [device.id for device in found] == ["/devices/virtual/net/even"]
    assert len(heard) == 1, heard
    assert "odd" in heard[0]


async def a_device_moves() -> None:
    """A network device is renamed: it is gone at its old path and there at the new one."""
    mount("sysfs", Path("/sys"))
    await ip("link", "add", "before", "type", "bridge")
    handler = UdevHandler(UdevSettings(rescan_interval=HOUR))

    rule = details('SUBSYSTEM=="net", KERNEL!="lo"')
    async with asyncio.timeout(30), aclosing(handler.discover(rule)) as lists:
        assert [device.id for device in await anext(lists)] == ["/devices/virtual/net/before"]
        await ip("link", "set", "before", "name", "after")
        async for found in lists:
            if [device.id for device in found] == ["/devices/virtual/net/after"]:
                break


async def ip(*arguments: str | bytes) -> None:
    await run("ip", *arguments)


async def run(*arguments: str | bytes) -> None:
    process = await asyncio.create_subprocess_exec(*arguments)
    assert await process.wait() == 0


STORIES = {
    story.__name__: story
    for story in (
        udevd_tells,
        udevd_names_devices,
        udevd_goes_and_comes,
        what_a_dead_udevd_said_is_not_believed,
        a_disk_is_guarded_by_its_medium,
        what_a_udevd_said_that_hangs_is_not_believed,
        a_start_beside_a_dead_udevd_believes_sysfs_alone,
        a_name_is_no_text,
        a_device_moves,
    )
}

if __name__ == "__main__":
    story, outside = sys.argv[1:]
    assert os.readlink("/proc/self/ns/net") != outside, "this needs namespaces of its own"
    asyncio.run(STORIES[story]())
