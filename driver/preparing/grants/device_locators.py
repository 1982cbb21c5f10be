"""DeviceLocator: where the devices are now that something was prepared with before.

    what is reported ──DeviceLocator──► find: the Instance of a device that was prepared
                                      rival: whose a path or an address of it is by now

An Instance that is not found is absent, unless its Configuration is unheard: not heard is not gone.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from driver.api import ConfigurationName, InstanceName
from driver.environment import BUILT_IN, EnvironmentRules
from driver.instances.instances import Instance
from driver.preparing.files.prepared import PreparedDevice

OFFLINE = "is offline"
"""Of a device that no handler reports, behind its name."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PreviousLocation:
    """Where a device was when something was given of it.

    Attributes:
        digest: Which device it is; "" where only its Instance's name is known.
        paths: Of its device nodes on the host.
        values: Of its properties.
    """

    configuration: ConfigurationName
    instance: InstanceName
    digest: str = ""
    paths: Sequence[str]
    values: Iterable[str]


def previous_location(device: PreparedDevice) -> PreviousLocation:
    """Where a prepared device was."""
    return PreviousLocation(
        configuration=device.configuration,
        instance=device.instance,
        digest=device.digest,
        paths=device.paths,
        values=device.properties.values(),
    )


class DeviceLocator:
    """All that a node knows of its devices at one moment; never changes.

    Args:
        reported: Those that are there.
        unheard: Configurations of which not all is known now.
        rules: By which properties become environment, of devices that nobody reports, too.
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
        """The Instance of this very device, whatever it is called by now."""
        if device.digest:
            return self._by_digest.get((device.configuration, device.digest))
        return self.named(device.instance)

    def named(self, name: InstanceName) -> Instance | None:
        """The Instance of this name."""
        return self._by_name.get(name)

    def is_unheard(self, configuration: ConfigurationName) -> bool:
        """Whether a device of this Configuration may be there though nobody reports it."""
        return configuration in self._unheard

    def rival(self, place: PreviousLocation) -> str:
        """Which other device of the Configuration is where this one was; "" if none is.

        Devices of two Configurations at one path may be one device.
        """
        for path in place.paths:
            for other in self._by_path.get(path, ()):
                if other.configuration == place.configuration and not _is(other, place):
                    return _said(path, other)
        return self._rival_at_address(place)

    def _rival_at_address(self, place: PreviousLocation) -> str:
        for address in filter(_is_address, place.values):
            other = self._by_address.get((place.configuration, address))
            if other is not None and not _is(other, place):
                return _said(address, other)
        return ""

    def why_withheld(self, place: PreviousLocation, *, is_address: bool) -> str:
        """Why nothing may be given of a device that is not reported; "" if what it had may.

        Args:
            place: Where it was.
            is_address: Whether all that it gives is where it is on the network: then it keeps
                that, and the application waits for it.
        """
        if rival := self.rival(place):
            return rival
        return "" if is_address or self.is_unheard(place.configuration) else OFFLINE

    def owner(self, path: str) -> InstanceName | None:
        """An Instance whose device node this path of the host is; the first by name."""
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
    """Whether a property says where a device on the network is: it is a URL."""
    return "://" in value


def _said(place: str, other: Instance) -> str:
    return f"was at {place}, where Instance {other.name} is now"
