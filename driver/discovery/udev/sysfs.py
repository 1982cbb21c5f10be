"""Devices as sysfs and udevd's database have them, read through libudev."""

from __future__ import annotations

import logging
import os
from collections import deque
from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import cached_property
from pathlib import Path
from typing import NamedTuple

import pyudev

from driver.discovery.udev.devices import Search
from driver.discovery.udev.handler_subscriptions import Subscription
from driver.discovery.udev.rules import InDoubtError
from driver.discovery.udev.uevents import sys_name_of

SYSFS = Path("/sys")
_FOLDERS = (("class", "*"), ("bus", "*/devices"))


class Listed(NamedTuple):
    """A device whose names alone were read."""

    path: str
    subsystem: str


def listed_devices(sysfs: Path = SYSFS) -> Iterator[Listed]:
    """All devices that have a subsystem, by their links in `/sys/class` and `/sys/bus`.

    Raises:
        OSError: If sysfs cannot be read.
    """
    for top, pattern in _FOLDERS:
        (sysfs / top).stat()  # glob treats a missing folder as empty
        for folder in sorted((sysfs / top).glob(pattern)):
            subsystem = folder.relative_to(sysfs / top).parts[0]
            for target in _links(folder):
                path = os.path.normpath(f"{folder}/{target}").removeprefix(str(sysfs))
                yield Listed(path, subsystem)


def _links(folder: Path) -> Iterator[str]:
    try:
        names = os.listdir(folder)
    except (FileNotFoundError, NotADirectoryError):  # the module was unloaded meanwhile
        return
    for name in names:
        # Not a device (`/sys/class/net/bonding_masters`), or absent by now.
        with suppress(OSError):
            yield os.readlink(f"{folder}/{name}")


class SysfsDevice:
    """A device, read on access; a new object reads anew.

    The kernel and udevd do not promise UTF-8. Other bytes are kept as surrogates, which patterns
    can match and which no Configuration can contain.

    Args:
        device: The device in libudev.
        doubts: Paths of the devices whose entries in udevd's database are in doubt. For these only
            the kernel's data counts.
    """

    def __init__(self, device: pyudev.Device, doubts: Container[str] = ()) -> None:
        self._device = device
        self._doubts = doubts

    @property
    def path(self) -> str:
        return _text(lambda: self._device.device_path) or ""

    @property
    def sys_name(self) -> str:
        return _text(lambda: self._device.sys_name) or ""

    @property
    def subsystem(self) -> str | None:
        return _text(lambda: self._device.subsystem)

    @property
    def driver(self) -> str | None:
        return _text(lambda: self._device.driver)

    @property
    def node(self) -> str | None:
        return _text(lambda: self._device.device_node)

    @property
    def parent(self) -> SysfsDevice | None:
        parent = self._device.parent
        return None if parent is None else SysfsDevice(parent, self._doubts)

    @property
    def is_settled(self) -> bool:
        """Whether udevd has processed it; udevd stores nothing for a device without a number."""
        return bool(self._device.is_initialized) or not self._device.device_number

    @property
    def is_in_doubt(self) -> bool:
        """Whether its entry in udevd's database may be outdated."""
        return self.path in self._doubts and bool(self._device.is_initialized)

    @property
    def properties(self) -> Mapping[str, str]:
        if self.is_in_doubt:
            return self._from_kernel
        return {name: self._property(name) or "" for name in self._device.properties}

    @cached_property
    def _from_kernel(self) -> Mapping[str, str]:
        """The kernel's properties, and those that libudev derives from the path."""
        named = {"DEVPATH": self.path, "SUBSYSTEM": self.subsystem or ""}
        pairs = (line.partition("=") for line in (self.attribute("uevent") or "").splitlines())
        from_uevent = {name: value for name, separator, value in pairs if separator}
        return {**from_uevent, **named, **({"DEVNAME": self.node} if self.node else {})}

    def attribute(self, name: str) -> str | None:
        value = self._device.attributes.get(name)
        return None if value is None else str(os.fsdecode(value))

    def property(self, name: str) -> str | None:
        if not self.is_in_doubt:
            return self._property(name)
        if name not in self._from_kernel:
            raise InDoubtError(self.path)
        return self._from_kernel[name]

    def _property(self, name: str) -> str | None:
        return _text(lambda: self._device.properties.get(name))

    def link(self, name: str) -> str | None:
        try:
            target = os.readlink(f"{SYSFS}{self.path}/{name}")
        except OSError:
            return None
        return target.rsplit("/", 1)[-1]

    def is_at(self, path: str) -> bool:
        return os.path.exists(path) and os.path.realpath(path) == self.node


def device_at(
    path: str, context: pyudev.Context, doubts: Container[str] = ()
) -> SysfsDevice | None:
    """The device at a path; None if there is none.

    Drivers, modules and queues also send events; they are not devices, and give None.

    Args:
        path: The path in sysfs, without the mount point.
        context: libudev's; each thread needs its own, because libudev is not thread-safe.
        doubts: See `SysfsDevice`.
    """
    try:
        found = pyudev.Devices.from_sys_path(context, os.fsencode(f"{SYSFS}{path}"))
    except pyudev.DeviceNotFoundError:
        return None
    device = SysfsDevice(found, doubts)
    is_device = path.startswith("/devices/") and device.subsystem is not None
    return device if is_device else None


def _text(read: Callable[[], str | None]) -> str | None:
    try:
        return read()
    except UnicodeDecodeError as error:
        return os.fsdecode(error.object)


logger = logging.getLogger(__name__)


class Looker:
    """Reads devices for subscriptions; used by one thread at a time.

    Args:
        settles: Whether a udevd runs, which adds properties to the kernel's.
        doubts: Paths of the devices whose entries in its database are in doubt.
    """

    def __init__(self, *, settles: bool, doubts: Container[str] = ()) -> None:
        self._context = pyudev.Context()
        self._doubts = doubts
        self._settles = settles
        self._unsettled: set[str] = set()
        self._refused: set[str] = set()

    def paths(self, subscriptions: Sequence[Subscription]) -> deque[str]:
        """Paths that a search may select, and those that it selected before."""
        searches = [subscription.search for subscription in subscriptions]
        paths = dict.fromkeys(path for search in searches for path in search.paths)
        for device in listed_devices():
            name = sys_name_of(device.path)
            if any(search.may_select(device.subsystem, name) for search in searches):
                paths[device.path] = None
        return deque(paths)

    def look(
        self, paths: Iterable[str], subscriptions: Sequence[Subscription], *, by_event: bool
    ) -> set[Subscription]:
        """Read devices for the searches; return the subscriptions that this changed.

        Args:
            paths: The devices to read.
            subscriptions: The subscriptions whose searches get them.
            by_event: Whether an event named these paths. Without an event udevd may not have
                processed a new device yet.
        """
        changed: set[Subscription] = set()
        for path in paths:
            device = device_at(path, self._context, self._doubts)
            if device is None:
                self._refused.discard(path)
            early = self._is_early(path, device, by_event=by_event)
            for subscription in subscriptions:
                if early and subscription.is_heard and path not in subscription.search:
                    continue
                if self._show(path, device, subscription.search):
                    changed.add(subscription)
        return changed

    def _is_early(self, path: str, device: SysfsDevice | None, *, by_event: bool) -> bool:
        """Whether udevd may still process a device, so that rules may not match it yet.

        The second look at a device assumes that udevd has finished: udevd does not process devices
        from before its start, unless it is triggered.
        """
        if not self._settles or by_event or device is None or device.is_settled:
            self._unsettled.discard(path)
            return False
        seen = path in self._unsettled
        self._unsettled.add(path)
        return not seen

    def _show(self, path: str, device: SysfsDevice | None, search: Search) -> bool:
        """Read one device; log a failure, so that it does not stop the others."""
        try:
            return search.look(path, device)
        except (OSError, ValueError, LookupError) as error:
            if path not in self._refused:
                self._refused.add(path)
                logger.warning("device cannot be read: path=%s error=%s", ascii(path), error)
            return False
