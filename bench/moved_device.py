"""From the move of a prepared device to the CDI file that says so.

    python -m bench.moved_device [--moves 40] [--dir DIR]

A real cluster of one node, a real udevd, and a pod whose claim has a disk: a loop device, known by
its file as by a serial number. The disk is pulled, and plugged elsewhere. Timed are

    pull    from before the kernel is told until the claim's CDI file names no disk
    plug    from before the kernel is told until it names the disk where it is now

In pairs with them, the baseline does the least that any driver must: it waits for the kernel's
event, without udevd, and replaces a CDI file as long as the driver's, synced to the same disk.
Needs root.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import pyudev

from bench.hotplug import percentile
from driver.plumbing.disk import Folder
from local_cluster import debian, loop_devices
from local_cluster.api import Cluster, ClusterSettings
from local_cluster.loop_devices import LoopDevice
from tests.e2e.driver import installation, lives
from tests.e2e.driver.installation import Drivers
from tests.e2e.driver.stories import Story
from tests.e2e.driver.test_moved_devices import SERIAL, a_disk, begin
from tests.e2e.driver.test_udevd import udevd

NAMESPACE = "default"
SECONDS = 30.0
POLL_SECONDS = 0.0005


@dataclass
class Claimed:
    """The claim's CDI file, and two places where its disk may be plugged."""

    file: Path
    disk: Path
    places: list[LoopDevice]

    def pull(self) -> float:
        start = time.perf_counter()
        self.places[0].detach()
        self._wait(None)
        return time.perf_counter() - start

    def plug(self) -> float:
        self.places.reverse()
        start = time.perf_counter()
        self.places[0].attach(self.disk)
        self._wait(str(self.places[0].path))
        return time.perf_counter() - start

    def _wait(self, path: str | None) -> None:
        deadline = time.perf_counter() + SECONDS
        while self._named() != path:
            assert time.perf_counter() < deadline, f"the file never named {path}"
            time.sleep(POLL_SECONDS)

    def _named(self) -> str | None:
        for device in json.loads(self.file.read_bytes())["devices"]:
            for node in device["containerEdits"].get("deviceNodes", ()):
                return str(node["hostPath"])
        return None


class Baseline:
    """An event, and a file."""

    def __init__(self, claimed: Claimed, folder: Path) -> None:
        self._monitor = pyudev.Monitor.from_netlink(pyudev.Context(), source="kernel")
        self._monitor.filter_by("block")
        self._monitor.start()
        self._place = loop_devices.plug()
        self._disk = folder / "baseline"
        self._disk.write_bytes(bytes(4096))
        self._folder = Folder(claimed.file.parent)
        self._name, self._content = "baseline.tmp", claimed.file.read_bytes()

    def end(self) -> None:
        loop_devices.unplug(self._place)
        self._folder.remove(self._name)

    def pull(self) -> float:
        return self._timed(self._place.detach)

    def plug(self) -> float:
        return self._timed(lambda: self._place.attach(self._disk))

    def _timed(self, act: Callable[[], None]) -> float:
        while self._monitor.poll(0) is not None:
            pass
        start = time.perf_counter()
        act()
        while (event := self._monitor.poll(SECONDS)) is None or event.sys_name != self._place.name:
            pass
        self._folder.write(self._name, self._content)
        return time.perf_counter() - start


@dataclass
class Times:
    """Seconds, of the driver and of the baseline in pairs."""

    driver: list[float] = field(default_factory=list)
    least: list[float] = field(default_factory=list)

    def say(self, name: str) -> None:
        ratio = statistics.median(a / b for a, b in zip(self.driver, self.least, strict=True))
        figures = "".join(f"{value:8.1f}" for value in (*spread(self.driver), *spread(self.least)))
        print(f"{name:6}{figures}{ratio:8.2f}")


def spread(seconds: Sequence[float]) -> tuple[float, float, float]:
    return percentile(seconds, 0.5), percentile(seconds, 0.99), max(seconds) * 1000


@contextmanager
def claimed_disk(work_dir: Path) -> Iterator[tuple[Claimed, Path]]:
    """A pod that has a disk; its claim's files, and a folder for others."""
    cluster = Cluster.up(ClusterSettings(work_dir=work_dir, nodes=1))
    try:
        installation.install_objects(cluster)
        node = cluster.start_component(installation.node_driver("node-a"))
        node.wait_ready()
        with tempfile.TemporaryDirectory(prefix="moorage-") as folder:
            drivers = Drivers({"node-a": node}, node)
            story = Story(cluster, drivers, NAMESPACE, "moved", Path(folder))
            try:
                yield from _claimed(story)
            finally:
                story.end()
    finally:
        cluster.down(purge=True)


def _claimed(story: Story) -> Iterator[tuple[Claimed, Path]]:
    details = json.dumps({"udevRules": [story.rule], "identity": "serial"})
    story.cluster.apply(class_of(story.name))
    story.cluster.apply(lives.configuration(story, story.name, "udev", details))
    with udevd(story, SERIAL):
        disk = a_disk(story, "mine")
        here = begin(story, disk)
        story.disks.append(there := loop_devices.plug())
        (file,) = story.cdi_files(story.claim_uid(), "node-a")
        yield Claimed(file, disk, [here, there]), story.folder


def class_of(name: str) -> dict[str, object]:
    """What the driver of the cluster would make, which does not run here."""
    expression = f'device.attributes["moorage.dev"].configuration == "{name}"'
    return {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "DeviceClass",
        "metadata": {"name": name},
        "spec": {
            "selectors": [
                {"cel": {"expression": f'device.driver == "moorage.dev" && {expression}'}}
            ]
        },
    }


def measure(work_dir: Path, moves: int) -> dict[str, Times]:
    times = {"pull": Times(), "plug": Times()}
    with claimed_disk(work_dir) as (claimed, folder):
        baseline = Baseline(claimed, folder)
        baseline.plug()
        for _ in range(moves):
            for name, act, least in (
                ("pull", claimed.pull, baseline.pull),
                ("plug", claimed.plug, baseline.plug),
            ):
                times[name].driver.append(act())
                times[name].least.append(least())
        baseline.end()
    return times


def main() -> int:
    """Measure on a cluster of its own, and print p50, p99, the most, and the ratio."""
    parser = argparse.ArgumentParser(description="From a device's move to its claim's CDI file.")
    parser.add_argument("--moves", type=int, default=40)
    parser.add_argument("--dir", type=Path, default=installation.ROOT / ".cluster-bench")
    arguments = parser.parse_args()
    debian.ensure_packages(debian.UDEV_PACKAGES)
    times = measure(arguments.dir, arguments.moves)
    print(f"{arguments.moves} moves of a prepared device, {os.cpu_count()} cores; milliseconds")
    print(f"{'':6}{'driver':>24}{'baseline':>24}")
    print(f"{'':6}" + f"{'p50':>8}{'p99':>8}{'max':>8}" * 2 + f"{'ratio':>8}")
    for name, one in times.items():
        one.say(name)
    return 0


if __name__ == "__main__":
    sys.exit(main())
