"""The devices of a Configuration, from the devices that its rules select.

    path, view ──look──► Search ──devices──► sorted tuple of Device

A selected device without a device node stands for its first ancestor that has one, as in Akri: a
rule may name an interface of a USB camera, and the container needs the camera's node.

A device is withheld while its entry in udevd's database is in doubt, if that entry decides whether
the device is selected, or which device it is.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from driver.devices import Device, DeviceSpec
from driver.discovery.udev.attributes import attributes_of
from driver.discovery.udev.details import UdevDetails
from driver.discovery.udev.guards import guards_of
from driver.discovery.udev.identity import (
    DEVPATH_IDENTITY,
    Claimant,
    Names,
    arrival_of,
    identity_of,
)
from driver.discovery.udev.passthrough import NO_PASSTHROUGH, Passthrough
from driver.discovery.udev.rules import DeviceView, InDoubtError, self_and_ancestors

DEVPATH = "UDEV_DEVPATH"
DEVNODE = "UDEV_DEVNODE"


@dataclass(frozen=True, slots=True)
class Find:
    """A selected device, or the ancestor that it stands for.

    Attributes:
        path: The device's path in sysfs, without the mount point.
        node: Its device node; None if neither the device nor any ancestor has one.
        identity: Its identity, of the kind in the details; None if that is its path.
        since: When it arrived, see `identity.arrival_of`.
        attributes: See `attributes`.
        iommu_group: The name of its IOMMU group, if the Configuration wants its VFIO nodes.
        number: The number of its device node, see `Device.nodes`.
        guards: See `guards`.
        in_doubt: Whether it is unknown what it is, or whether it is selected at all.
    """

    path: str
    node: str | None
    identity: str | None = None
    since: int = 0
    attributes: Mapping[str, str] = field(default_factory=dict)
    iommu_group: str | None = None
    number: str = ""
    guards: tuple[str, ...] = ()
    in_doubt: bool = False


Group = tuple[Find, ...]


class Search:
    """The devices that the rules of one Configuration select.

    `look` reads the current state of a device. So the caller may look at paths in any order, any
    number of times, and while devices come and go.
    """

    def __init__(self, details: UdevDetails, passthrough: Passthrough = NO_PASSTHROUGH) -> None:
        self._details = details
        self._passthrough = passthrough
        self._finds: dict[str, Find] = {}
        self._names = Names()
        self._devices: dict[str, tuple[Group, Device]] = {}

    def __contains__(self, path: object) -> bool:
        return path in self._finds

    @property
    def paths(self) -> tuple[str, ...]:
        """Paths of the selected devices, and of those in doubt."""
        return tuple(self._finds)

    @property
    def withheld(self) -> tuple[str, ...]:
        """Paths of the devices in doubt. They are not reported, nor is a group with one of them."""
        return tuple(path for path, find in self._finds.items() if find.in_doubt)

    def has_below(self, path: str) -> bool:
        """Whether a device below this path is selected."""
        return any(each.startswith(f"{path}/") for each in self.paths)

    def may_select(self, subsystem: str, sys_name: str) -> bool:
        """Whether a rule may select a device of this name."""
        return any(rule.may_match(subsystem, sys_name) for rule in self._details.rules)

    def look(self, path: str, device: DeviceView | None) -> bool:
        """Record the current state of a device; return whether that changed anything.

        Args:
            path: The device's path.
            device: The device; None if it is absent.

        Raises:
            UnicodeEncodeError: If it is selected and its name is not UTF-8.
        """
        find = None if device is None else self._find(device)
        if find == self._finds.get(path):
            return False
        if find is None:
            del self._finds[path]
        else:
            self._finds[path] = find
        return True

    @property
    def due(self) -> float | None:
        """When to call `devices` again though nothing changed; see `Names`."""
        return self._names.due

    def devices(self, now: float) -> tuple[Device, ...]:
        """All devices that have an id, sorted by id; see `Names.give`."""
        unique = {find.path: find for find in self._finds.values()}.values()
        groups = _grouped(unique) if self._details.group_recursive else ((find,) for find in unique)
        found = {g[0].path: g for g in groups if not any(find.in_doubt for find in g)}
        tops = (group[0] for group in found.values())
        ids = self._names.give((Claimant(top.path, top.identity, top.since) for top in tops), now)
        # Usually one of a thousand devices changes: the others are reused.
        known = self._devices
        self._devices = {
            path: (group, self._again(known.get(path), group, ids[path]))
            for path, group in found.items()
            if path in ids
        }
        devices = (device for _, device in self._devices.values())
        return tuple(sorted(devices, key=lambda device: device.id))

    def unnamed(self) -> tuple[str, ...]:
        """Paths of the listed devices that have their path as id, because they lack an identity."""
        if self._details.identity == DEVPATH_IDENTITY:
            return ()
        return tuple(path for path, (_, device) in self._devices.items() if device.id == path)

    def _find(self, device: DeviceView) -> Find | None:
        """The Find of a device; None if no rule selects it."""
        try:
            is_selected = any(rule.matches(device) for rule in self._details.rules)
            return self._selected(device) if is_selected else None
        except InDoubtError:
            return Find(path=_text(device.path), node=None, in_doubt=True)

    def _selected(self, device: DeviceView) -> Find:
        top = next((each for each in self_and_ancestors(device) if each.node is not None), device)
        identity = identity_of(top, self._details.identity)
        return Find(
            path=_text(top.path),
            node=None if top.node is None else _text(top.node),
            identity=None if identity is None else _text(identity),
            since=0 if identity is None else arrival_of(top),
            attributes=attributes_of(top),
            iommu_group=top.link("iommu_group") if self._passthrough.vfio else None,
            number=_number(top),
            guards=() if identity is None else guards_of(top, self._details.identity),
        )

    def _again(self, known: tuple[Group, Device] | None, group: Group, name: str) -> Device:
        if known is not None and known[0] == group and known[1].id == name:
            return known[1]
        return self._device(group, name)

    def _device(self, group: Group, name: str) -> Device:
        top, asked = group[0], self._passthrough
        nodes = [find.node for find in group if find.node is not None]
        properties = {DEVPATH: top.path, **asked.pci(top.path)}
        for i, node in enumerate(nodes):
            suffix = f"_{i}" if self._details.group_recursive else ""
            variables = {DEVNODE: node, **asked.usb(node)}
            properties.update(
                (f"{variable}{suffix}", value) for variable, value in variables.items()
            )
        specs = (DeviceSpec(node, node, self._details.permissions) for node in nodes)
        return Device(
            id=name,
            properties=properties,
            device_specs=(*specs, *asked.specs(top.path, top.iommu_group)),
            attributes=top.attributes,
            nodes=tuple(find.number for find in group if find.number),
            guards=tuple(dict.fromkeys(guard for find in group for guard in find.guards)),
        )


def _number(device: DeviceView) -> str:
    """As in udevd's database, `b7:1` or `c81:0`; without a device node its path in sysfs."""
    if device.node is None:
        return _text(device.path)
    major, minor = device.property("MAJOR"), device.property("MINOR")
    kind = "b" if device.subsystem == "block" else "c"
    return f"{kind}{major}:{minor}" if major and minor else ""


def _text(value: str) -> str:
    """The value itself.

    Raises:
        UnicodeEncodeError: If it has bytes that are not UTF-8, which no Instance can hold.
    """
    value.encode()
    return value


def _grouped(finds: Iterable[Find]) -> Iterator[Group]:
    """Groups of a device and all devices below it, the topmost first.

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
