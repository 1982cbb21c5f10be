"""What goes wrong with vendors' drivers: they are killed, or away for a while."""

from __future__ import annotations

from dataclasses import dataclass
from random import Random

from tests.chaos.faults import Fault, nothing
from tests.chaos.vendors import Vendors


@dataclass
class VendorFaults:
    """Breaks one driver after the other; their claims stay prepared."""

    vendors: Vendors
    random: Random

    def kill(self) -> Fault:
        """It starts again at once."""
        driver = self.random.choice(self.vendors.drivers)
        driver.handle.kill()
        return Fault(f"kill {driver.name} on {driver.node}", 0, nothing)

    def stop(self) -> Fault:
        """After half a minute the kubelet deletes its slices."""
        driver = self.random.choice(self.vendors.drivers)
        driver.handle.stop()
        seconds = self.random.choice((3.0, 10.0, 45.0))
        what = f"stop {driver.name} on {driver.node} for {seconds:g} s"
        return Fault(what, seconds, driver.handle.start)
