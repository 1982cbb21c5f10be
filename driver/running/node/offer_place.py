"""Whose devices a node's driver offers, and how."""

from __future__ import annotations

from dataclasses import dataclass, field

from driver.api import NodeName
from driver.devices import AKRIS_DIGITS
from driver.environment import BUILT_IN, EnvironmentRules
from driver.plumbing.disk_dev import HostDev
from driver.publishing.apiserver_path import NodePath
from driver.publishing.shown.local_pools import Homes


@dataclass(frozen=True, slots=True)
class OfferPlace:
    """Whose devices are offered, and how.

    Attributes:
        unique_devices_default: What `spec.uniqueDevices` means where it is absent.
        rules: By which properties of devices become environment of containers.
        homes: Of what was prepared by an earlier process, see `local_pools`.
        dev: The host's device nodes.
    """

    node: NodeName
    path: NodePath
    unique_devices_default: bool
    hash_digits: int = AKRIS_DIGITS
    homes: Homes = field(default_factory=dict)
    rules: EnvironmentRules = BUILT_IN
    dev: HostDev = field(default_factory=HostDev)
