"""From what rules select to the devices that a Configuration gets.

    path, view ──look──► Search ──devices──► sorted tuple of Device

A selected device without a device node stands for its first ancestor that has one, as in Akri: a
rule may name an interface of a USB camera, and the container needs the camera's node.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple

from driver.devices import Device, DeviceSpec
from driver.discovery.udev_details import UdevDetails
from driver.discovery.udev_rules import DeviceView, self_and_ancestors

DEVPATH = "UDEV_DEVPATH"
DEVNODE = "UDEV_DEVNODE"


class Find(NamedTuple):
    """What a selected device stands for.

    Attributes:
        path: The device's path in sysfs, without the mount point.
        node: None where neither the device nor any ancestor has a device node.
    """

    path: str
    node: str | None


Group = tuple[Find, ...]


class Search:
    """What the rules of one Configuration have found so far.

    Looking at a path tells how the device is now, so it may be done in any order, any number of
    times, and for devices that come and go meanwhile.
    """

    def __init__(self, details: UdevDetails) -> None:
        self._details = details
        self._finds: dict[str, Find] = {}
        self._devices: dict[Group, Device] = {}

    def __contains__(self, path: object) -> bool:
        return path in self._finds

    @property
    def paths(self) -> tuple[str, ...]:
        """The selected devices."""
        return tuple(self._finds)

    def has_below(self, path: str) -> bool:
        """Whether a device below this path is selected."""
        return any(each.startswith(f"{path}/") for each in self.paths)

    def may_select(self, subsystem: str, sys_name: str) -> bool:
        """Whether it is worth to look at a device of this name."""
        return any(rule.may_match(subsystem, sys_name) for rule in self._details.rules)

    def look(self, path: str, device: DeviceView | None) -> bool:
        """Take note of a device as it is now; whether that changes anything.

        Args:
            path: The device's path.
            device: None if it is gone.

        Raises:
            UnicodeEncodeError: If it is selected and its name is no text.
        """
        find = None
        if device is not None and any(rule.matches(device) for rule in self._details.rules):
            find = _find(device)
        if find == self._finds.get(path):
            return False
        if find is None:
            del self._finds[path]
        else:
            self._finds[path] = find
        return True

    def devices(self) -> tuple[Device, ...]:
        """All devices, in the order of their ids."""
        unique = {find.path: find for find in self._finds.values()}
        groups: Iterable[Group] = ((find,) for find in unique.values())
        if self._details.group_recursive:
            groups = _grouped(unique.values())
        # Of a thousand devices one changes: the others are not made again.
        known = self._devices
        self._devices = {group: known.get(group) or self._device(group) for group in groups}
        return tuple(sorted(self._devices.values(), key=lambda device: device.id))

    def _device(self, group: Group) -> Device:
        nodes = [find.node for find in group if find.node is not None]
        names = [DEVNODE] * len(nodes)
        if self._details.group_recursive:
            names = [f"{DEVNODE}_{i}" for i in range(len(nodes))]
        top = group[0].path
        return Device(
            id=top,
            properties={DEVPATH: top, **dict(zip(names, nodes, strict=True))},
            device_specs=tuple(DeviceSpec(node, node, self._details.permissions) for node in nodes),
        )


def _find(device: DeviceView) -> Find:
    for each in self_and_ancestors(device):
        if (node := each.node) is not None:
            return Find(_text(each.path), _text(node))
    return Find(_text(device.path), None)


def _text(value: str) -> str:
    """The value itself.

    Raises:
        UnicodeEncodeError: If it holds bytes that are no UTF-8, which no Instance can hold.
    """
    value.encode()
    return value


def _grouped(finds: Iterable[Find]) -> Iterator[Group]:
    """Groups of a device and all that are below it, each with the topmost first.

    Paths are compared part by part: `…/1-10` is not below `…/1-1`.
    """
    group: Group = ()
    for find in sorted(finds, key=lambda find: find.path.split("/")):
        if group and not find.path.startswith(f"{group[0].path}/"):
            yield group
            group = ()
        group += (find,)
    if group:
        yield group
