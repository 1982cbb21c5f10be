"""How many devices each Configuration has, counted as Instances change.

With thousands of devices it takes too long to look at each of them for each broker that is made.
"""

from __future__ import annotations

from dataclasses import dataclass

from driver.api import ConfigurationName
from driver.brokers.devices import Device


@dataclass(frozen=True, slots=True)
class Count:
    """The devices of a Configuration in numbers.

    Attributes:
        devices: How many there are.
        most_pods: How many broker Pods they may have.
    """

    devices: int = 0
    most_pods: int = 0

    def plus(self, device: Device, times: int = 1) -> Count:
        """With this device more; -1 is with this device less."""
        return Count(self.devices + times, self.most_pods + times * device.most_pods)


NONE = Count()


class Counts:
    """The counts of all Configurations."""

    def __init__(self) -> None:
        self._counts: dict[tuple[str, ConfigurationName], Count] = {}

    def note(self, before: Device | None, after: Device | None) -> None:
        """Count a change of an Instance; None where there is no device."""
        if before is not None:
            self._add(before, -1)
        if after is not None:
            self._add(after, 1)

    def _add(self, device: Device, times: int) -> None:
        key = device.namespace, device.configuration
        count = self._counts.get(key, NONE).plus(device, times)
        if count.devices:
            self._counts[key] = count
        else:
            del self._counts[key]

    def of(self, namespace: str, configuration: ConfigurationName) -> Count:
        """The count of one Configuration."""
        return self._counts.get((namespace, configuration), NONE)
