"""The identity of a device: how it is recognized when it is plugged in again.

By default a device is its place in sysfs, as in Akri. The details may choose another identity:

    devpath   the path in sysfs, `/devices/…`: another port is another device
    serial    the serial number of the hardware, and which of its functions it is
    by-id     udevd's link in `/dev/…/by-id`
    by-path   udevd's link in `/dev/…/by-path`, else its `ID_PATH`

A device without the chosen identity gets its path as id. So does a device whose identity another
device has already: of devices with one identity the first keeps it as long as it is present. Only
the order of their arrival distinguishes such devices.

A device that moves quickly to another port looks like two devices for a moment: udevd may report
its arrival before its removal. So a new device whose identity is taken has no id for
`MOVE_SECONDS`. An id stays once it is given, because a pod may hold the device by it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import NamedTuple

from driver.discovery.udev.rules import DeviceView, self_and_ancestors

DEVPATH_IDENTITY = "devpath"
IDENTITIES = (DEVPATH_IDENTITY, "serial", "by-id", "by-path")


def identity_of(device: DeviceView, kind: str) -> str | None:
    """The identity of a device, never a path; None if it has none of this kind.

    Args:
        device: The current state of the device.
        kind: One of `IDENTITIES`.
    """
    match kind:
        case "serial":
            serial = _serial(device)
            value = serial and "/".join((serial, *_function(device)))
        case "by-id":
            value = _link(device, "by-id")
        case "by-path":
            value = _link(device, "by-path") or _port(device)
        case _:
            value = None
    return f"{kind}:{value}" if value else None


def arrival_of(device: DeviceView) -> int:
    """When udevd first saw it, in microseconds since the boot; 0 if udevd never did."""
    since = device.property("USEC_INITIALIZED") or ""
    return int(since) if since.isascii() and since.isdigit() else 0


def _serial(device: DeviceView) -> str | None:
    """The serial number as udevd has it, else as the kernel has it, with vendor and product."""
    short, bus = device.property("ID_SERIAL_SHORT"), device.property("ID_BUS")
    vendor, product = device.property("ID_VENDOR_ID"), device.property("ID_MODEL_ID")
    if short and vendor and product:
        return f"{vendor}:{product}:{short}"
    # For a USB device without a serial number udevd puts vendor and model there.
    if (whole := device.property("ID_SERIAL")) and (short or bus != "usb"):
        return whole
    for each in self_and_ancestors(device):
        vendor, serial = each.attribute("idVendor"), (each.attribute("serial") or "").strip()
        if vendor is not None:
            return f"{vendor}:{each.attribute('idProduct')}:{serial}" if serial else None
        if serial:
            return serial
    return None


def _function(device: DeviceView) -> Iterator[str]:
    """Which function of the hardware it is: a camera has several devices, a disk partitions."""
    yield device.subsystem or ""
    for each in self_and_ancestors(device):
        if each.attribute("idVendor") is not None:
            break
        if interface := each.attribute("bInterfaceNumber"):
            yield f"interface{interface.strip()}"
            break
    if index := device.attribute("index"):
        yield f"index{index.strip()}"
    if partition := device.property("PARTN"):
        yield f"part{partition}"


def _link(device: DeviceView, folder: str) -> str | None:
    links = (device.property("DEVLINKS") or "").split()
    return min((link for link in links if f"/{folder}/" in link), default=None)


def _port(device: DeviceView) -> str | None:
    port = device.property("ID_PATH")
    return f"{port}/{device.subsystem}" if port else None


class Claimant(NamedTuple):
    """A device that needs an id.

    Attributes:
        identity: Its identity; None if it gets its path as id.
        since: Its time of arrival, see `arrival_of`.
    """

    path: str
    identity: str | None
    since: int


MOVE_SECONDS = 3.0
"""How long after its arrival elsewhere the removal of a device may be reported."""


class Names:
    """The ids of devices; a device with an identity keeps it while it is present.

    Attributes:
        due: When a new device whose identity is taken gets its path as id; None if there is none.
    """

    def __init__(self) -> None:
        self.due: float | None = None
        self._given: dict[str, tuple[str | None, str]] | None = None
        self._newcomers: dict[str, tuple[str | None, float]] = {}

    def give(self, claimants: Iterable[Claimant], now: float) -> Mapping[str, str]:
        """The ids of these devices, by path.

        The devices of the first call did not move in between, so all of them get ids at once.

        Args:
            claimants: All present devices.
            now: Seconds of a monotonic clock.
        """
        present = {claimant.path: claimant for claimant in claimants}
        is_first, given = self._given is None, self._given or {}
        kept = {
            path: (identity, name)
            for path, (identity, name) in given.items()
            if path in present and present[path].identity == identity
        }
        taken = {name for _, name in kept.values()}
        newcomers: dict[str, tuple[str | None, float]] = {}
        new = (claimant for path, claimant in present.items() if path not in kept)
        for claimant in sorted(new, key=lambda each: (each.since, each.path)):
            path, wanted = claimant.path, claimant.identity
            until = self._until(claimant, now)
            if wanted in taken and not is_first and now < until:
                newcomers[path] = (wanted, until)
                continue
            name = path if wanted is None or wanted in taken else wanted
            taken.add(name)
            kept[path] = (wanted, name)
        self._given, self._newcomers = kept, newcomers
        self.due = min((until for _, until in newcomers.values()), default=None)
        return {path: name for path, (_, name) in kept.items()}

    def _until(self, claimant: Claimant, now: float) -> float:
        """Until when it may turn out to be the device that has its identity, moved."""
        wanted, until = self._newcomers.get(claimant.path, (None, 0.0))
        return until if wanted == claimant.identity else now + MOVE_SECONDS
