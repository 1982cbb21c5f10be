"""DeviceLocator: the current locations of devices that were prepared before.

    reported Instances ──DeviceLocator──► find: the Instance of a prepared device
                                          rival: the Instance that has its path or address now

A device without an Instance is absent, unless not all devices of its Configuration are known.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from driver.api import ConfigurationName, InstanceName
from driver.environment_rules import BUILT_IN, EnvironmentRules
from driver.instances.instances import Instance
from driver.preparing.files.prepared import PreparedDevice

OFFLINE = "is offline"
"""The end of a sentence about a device that no handler reports."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PreviousLocation:
    """The location of a device when it was prepared.

    Attributes:
        digest: Identifies the device; "" if only the name of its Instance is known.
        paths: The paths of its device nodes on the host.
        values: The values of its properties.
    """

    configuration: ConfigurationName
    instance: InstanceName
    digest: str = ""
    paths: Sequence[str]
    values: Iterable[str]


def previous_location(device: PreparedDevice) -> PreviousLocation:
    """The previous location of a prepared device."""
    return PreviousLocation(
        configuration=device.configuration,
        instance=device.instance,
        digest=device.digest,
        paths=device.paths,
        values=device.properties.values(),
    )


class DeviceLocator:
    """The locations of a node's devices at one moment; immutable.

    Args:
        reported: The Instances of present devices.
        unheard: Configurations whose devices are not all known now.
        rules: Which properties become environment, also for absent devices.
    """

    def __init__(
        self,
        reported: Iterable[Instance],
        unheard: Collection[ConfigurationName] = (),
        rules: EnvironmentRules = BUILT_IN,
    ) -> None:
        self.rules = rules
        self._reported = tuple(reported)
        self._unheard = frozenset(unheard)

    def find(self, device: PreparedDevice) -> Instance | None:
        """The Instance of a prepared device; its name may have changed."""
        if device.digest:
            return self._by_digest.get((device.configuration, device.digest))
        return self.named(device.instance)

    def named(self, name: InstanceName) -> Instance | None:
        """The Instance of this name."""
        return self._by_name.get(name)

    def is_unheard(self, configuration: ConfigurationName) -> bool:
        """Whether a device of this Configuration may be present though it is not reported."""
        return configuration in self._unheard

    def rival(self, place: PreviousLocation) -> str:
        """A part of a sentence: which other device is at the previous location; "" for none.

        Only devices of the same Configuration count: devices of two Configurations at one path may
        be one device.
        """
        for path in place.paths:
            for other in self._by_path.get(path, ()):
                if other.configuration == place.configuration and not _is(other, place):
                    return _was_at(path, other)
        return self._rival_at_address(place)

    def _rival_at_address(self, place: PreviousLocation) -> str:
        for address in filter(_is_address, place.values):
            other = self._by_address.get((place.configuration, address))
            if other is not None and not _is(other, place):
                return _was_at(address, other)
        return ""

    def why_withheld(self, place: PreviousLocation, *, is_address: bool) -> str:
        """Why containers may get nothing of an unreported device; "" if they get what it had.

        Args:
            place: Its previous location.
            is_address: Whether it consists of a network address alone. It then keeps the address,
                and the application waits for the device.
        """
        if rival := self.rival(place):
            return rival
        return "" if is_address or self.is_unheard(place.configuration) else OFFLINE

    def owner(self, path: str) -> InstanceName | None:
        """The Instance with a device node at this path of the host, the first by name."""
        return min((i.name for i in self._by_path.get(path, ())), default=None)

    @cached_property
    def _by_digest(self) -> Mapping[tuple[ConfigurationName, str], Instance]:
        return {(i.configuration, i.device): i for i in self._reported}

    @cached_property
    def _by_name(self) -> Mapping[InstanceName, Instance]:
        return {i.name: i for i in self._reported}

    @cached_property
    def _by_path(self) -> Mapping[str, list[Instance]]:
        found: dict[str, list[Instance]] = defaultdict(list)
        for instance in self._reported:
            for spec in instance.device_specs:
                found[spec.host_path].append(instance)
        return dict(found)

    @cached_property
    def _by_address(self) -> Mapping[tuple[ConfigurationName, str], Instance]:
        return {
            (i.configuration, value): i
            for i in self._reported
            for value in i.properties.values()
            if _is_address(value)
        }


def _is(instance: Instance, place: PreviousLocation) -> bool:
    if place.digest:
        return instance.device == place.digest
    return instance.name == place.instance


def _is_address(value: str) -> bool:
    """Whether the value of a property is the network address of a device: a URL."""
    return "://" in value


def _was_at(place: str, other: Instance) -> str:
    return f"was at {place}, where Instance {other.name} is now"
