"""What the rules look at beside the object itself."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from scheduler_plugin.api import AccountingSettings, Catalog, QueueTree


@dataclass(frozen=True, slots=True, kw_only=True)
class Surroundings:
    """The cluster as it is known at this moment, and what an administrator decided.

    Attributes:
        tree: All queues.
        catalog: All classes, Configurations and Instances, by the names that stand for them.
        exists: Whether there is a DeviceClass or a Configuration of a name.
        scheduler_names: The schedulers that accounting is part of.
    """

    tree: QueueTree
    catalog: Catalog
    exists: Callable[[str], bool]
    settings: AccountingSettings
    scheduler_names: frozenset[str]
