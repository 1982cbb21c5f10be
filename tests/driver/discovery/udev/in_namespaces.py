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
import subprocess
import sys
import time
from collections.abc import AsyncGenerator, Iterator
from contextlib import aclosing, contextmanager
from datetime import timedelta
from pathlib import Path

from driver.devices import Device
from driver.discovery.udev.details import UdevDetails, parse_udev_details
from driver.discovery.udev.handler import UdevHandler
from driver.discovery.udev.netlink import Source, udevd_source
from driver.discovery.udev.netlink_watch import UdevSettings
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


def prepare(devices: Loops) -> None:
    """Leave udevd nothing but one rule on this test's devices."""
    for place in (RULES, Path("/etc/udev/rules.d"), Path("/run")):
        if place.exists():
            mount("tmpfs", place)
    LINKS.mkdir(exist_ok=True)
    mount("tmpfs", LINKS)
    told = 'ENV{MOORAGE_TEST}="yes", TAG+="moorage", ENV{ID_SERIAL}="S1", SYMLINK+="disk/by-id/s1"'
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
    process = await asyncio.create_subprocess_exec("ip", *arguments)
    assert await process.wait() == 0


STORIES = {
    story.__name__: story
    for story in (
        udevd_tells,
        udevd_names_devices,
        udevd_goes_and_comes,
        a_name_is_no_text,
        a_device_moves,
    )
}

if __name__ == "__main__":
    story, outside = sys.argv[1:]
    assert os.readlink("/proc/self/ns/net") != outside, "this needs namespaces of its own"
    asyncio.run(STORIES[story]())
