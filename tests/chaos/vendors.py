"""Vendors' devices in the trials: they come and go, and users and queues ask for parts of them.

GPUs that claims divide by memory and one that is partitioned by counters are on one node, and on
the other NICs that claims divide by bandwidth, each of which takes a port of a switch.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from random import Random

from local_cluster.api import Cluster
from tests.chaos.objects import VENDORS, Object
from tests.e2e import vendor_devices
from tests.e2e.vendor_devices import VendorDriver
from tests.e2e.vendor_hardware import (
    Slice,
    divisible_gpus,
    divisible_nics,
    partitionable_gpus,
)

GPUS, NICS = VENDORS
NODES = {GPUS: "node-a", NICS: "node-b"}
HARDWARE = {GPUS: ("gpu-0", "gpu-1", "mig-0"), NICS: ("nic-0", "nic-1")}
PORTS = 2

HAVE_MEASURES = ("1.36", "1.37")
"""Which Kubernetes lets several claims divide a device, and counts what devices have in common."""

PARTITION = f'device.attributes["{GPUS}"].type == "partition"'
SMALL = f'{PARTITION} && device.attributes["{GPUS}"].profile == "1g.10gb"'
WHOLE = f'device.attributes["{GPUS}"].type == "gpu"'

MEMORY: Object = {"name": "gpu-memory", "driver": GPUS, "measure": {"capacity": "memory"}}
PARTITIONS: Object = {"name": "partitions", "driver": GPUS, "selector": PARTITION}
PROCESSORS: Object = {
    "name": "multiprocessors",
    "driver": GPUS,
    "measure": {"counter": {"set": "mig-*", "name": "multiprocessors"}},
}
LINK: Object = {"name": "link", "deviceClass": NICS, "measure": {"capacity": "bandwidth"}}
SWITCH: Object = {
    "name": "ports",
    "driver": NICS,
    "measure": {"counter": {"set": "switch-*", "name": "ports"}},
}
STEPS = {"gpu-memory": "20Gi", "multiprocessors": "28", "link": "10G", "ports": "1"}
"""What one of an entry's quota or limit is; without it, a device."""

ENTRIES: dict[str, list[Object]] = {
    "org": [
        {**MEMORY, "quota": "80Gi", "limit": "140Gi"},
        {**PARTITIONS, "quota": 2},
        {**LINK, "quota": "40G", "limit": "80G"},
        {**SWITCH, "quota": "2"},
    ],
    "red": [{**MEMORY, "quota": "40Gi", "limit": "80Gi"}, {**PARTITIONS, "quota": 1, "limit": 2}],
    "blue": [{**MEMORY, "quota": "20Gi"}, {**LINK, "quota": "20G"}, {**SWITCH, "limit": "1"}],
    "green": [{**MEMORY, "quota": "20Gi", "limit": "60Gi"}, {**PROCESSORS, "limit": "56"}],
}
"""What the scene's queues list beside Moorage's classes. The root lists what its children do."""


def _request(name: str, of_class: str, *, count: int = 1, only: str = "", **much: str) -> Object:
    found: Object = {"name": name, "deviceClassName": of_class, "count": count}
    if only:
        found["selectors"] = [{"cel": {"expression": only}}]
    if much:
        found["capacity"] = {"requests": much}
    return found


def _exactly(request: Object) -> Object:
    name = request.pop("name")
    return {"name": name, "exactly": request}


REQUESTS: dict[str, list[Object]] = {
    "gpu-default": [_exactly(_request("device", GPUS))],
    "gpu-part": [_exactly(_request("device", GPUS, memory="12Gi"))],
    "gpu-pair": [_exactly(_request("device", GPUS, count=2, memory="30Gi"))],
    "gpu-slice": [_exactly(_request("device", GPUS, only=SMALL))],
    "gpu-either": [
        {
            "name": "device",
            "firstAvailable": [
                _request("slice", GPUS, only=PARTITION),
                _request("whole", GPUS, only=WHOLE, memory="80Gi"),
            ],
        }
    ],
    "nic-part": [_exactly(_request("device", NICS, bandwidth="9500M"))],
    "nic-pair": [_exactly(_request("device", NICS, count=2, bandwidth="20G"))],
}
"""What claims ask of vendors, by the names of templates.

The small alternative comes first: one that Bind refuses leaves its devices to nobody for two
minutes, for which a rest would have to wait.
"""


def amount(name: str, steps: int) -> int | str:
    """So many steps of an entry, as a quota or limit; -1 is none."""
    if steps < 0 or name not in STEPS:
        return steps
    digits = STEPS[name].rstrip("GiM")
    return f"{int(digits) * steps}{STEPS[name].removeprefix(digits)}"


def slices(driver: str, names: tuple[str, ...]) -> list[Slice]:
    """What a driver publishes that finds this hardware."""
    if driver == NICS:
        return _nics(*names)
    found = divisible_gpus(*(name for name in names if not name.startswith("mig")))
    parts = [name for name in names if name.startswith("mig")]
    return [*found, *(partitionable_gpus(*parts) if parts else [])]


def _nics(*names: str) -> list[Slice]:
    counters = {"ports": {"value": "1"}}
    consumed = [{"counterSet": "switch-0", "counters": counters}]
    switch = {"name": "switch-0", "counters": {"ports": {"value": str(PORTS)}}}
    (found,) = divisible_nics(*names)
    devices = [{**device, "consumesCounters": consumed} for device in found["devices"]]
    return [{"sharedCounters": [switch]}, {"devices": devices}]


@dataclass
class Vendors:
    """The vendors' drivers of a cluster, and the hardware that each finds."""

    drivers: list[VendorDriver] = field(default_factory=list)
    plugged: dict[str, list[str]] = field(default_factory=dict)

    def start(self, cluster: Cluster, name: str) -> VendorDriver:
        self.plugged[name] = [*HARDWARE[name]]
        found = slices(name, HARDWARE[name])
        driver = vendor_devices.start(cluster, name, found, NODES[name])
        self.drivers.append(driver)
        return driver

    def change_hardware(self, random: Random) -> str:
        """A device is gone, or is back; its driver finds it when it starts anew."""
        driver = random.choice(self.drivers)
        device, there = random.choice(HARDWARE[driver.name]), self.plugged[driver.name]
        self.plugged[driver.name] = now = sorted({*there} ^ {device})
        vendor_devices.write_profile(driver.profile, slices(driver.name, (*now,)))
        driver.handle.restart()
        return f"{'add' if device in now else 'remove'} {device} of {driver.name}"

    def revive(self) -> None:
        """Start what has ended; that which runs stays."""
        for driver in self.drivers:
            driver.handle.start()


@contextmanager
def vendors(cluster: Cluster) -> Iterator[Vendors]:
    """Both drivers, which have published all; at the end their slices and classes are gone."""
    found = Vendors()
    with ExitStack() as stack:
        for name in VENDORS:
            stack.callback(vendor_devices.remove, found.start(cluster, name))
        for driver in found.drivers:
            driver.wait_published()
        yield found
