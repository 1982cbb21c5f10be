"""The node of a driver, and its settings for offering devices."""

from __future__ import annotations

from dataclasses import dataclass, field

from driver.api import NodeName
from driver.configurations.configurations import Verdict, judge
from driver.devices import AKRIS_DIGITS
from driver.discovery.handlers import check_details
from driver.environment_rules import BUILT_IN, EnvironmentRules
from driver.plumbing.disk_dev import HostDev
from driver.publishing.apiserver_path import NodePath
from driver.publishing.desired.local_pools import Homes
from kube.objects import JsonObject


@dataclass(frozen=True, slots=True)
class OfferPlace:
    """The node, and its settings for offering devices.

    Attributes:
        unique_devices_default: The default of `spec.uniqueDevices`.
        hash_digits: Digits of the hash in new names of Instances.
        homes: Pools of the devices of prepared claims, see `local_pools`.
        rules: Which properties of devices become environment of containers.
        dev: The host's `/dev`.
    """

    node: NodeName
    path: NodePath
    unique_devices_default: bool
    hash_digits: int = AKRIS_DIGITS
    homes: Homes = field(default_factory=dict)
    rules: EnvironmentRules = BUILT_IN
    dev: HostDev = field(default_factory=HostDev)

    def judged(self, body: JsonObject) -> Verdict:
        """Parse a Configuration by these settings."""
        return judge(body, check_details, unique_devices_default=self.unique_devices_default)
