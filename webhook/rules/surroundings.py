"""What the rules look at beside the object itself."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum

from scheduler_plugin.api import AccountingSettings, Catalog, QueueTree


class Hold(StrEnum):
    """How pods wait for quota."""

    GATE = "Gate"
    RETRY = "Retry"


class OtherSchedulers(StrEnum):
    """What becomes of pods of other schedulers that ask for accounted devices."""

    REFUSE = "Refuse"
    ALLOW = "Allow"


@dataclass(frozen=True, slots=True, kw_only=True)
class PodSettings:
    """What an administrator decides about new pods.

    Attributes:
        scheduler_names: The schedulers that accounting is part of; the first is the one that
            pods of namespaces that opt in are sent to.
        hold: Whether those get a gate, or are refused by the scheduler until they fit.
    """

    scheduler_names: tuple[str, ...] = ("moorage",)
    hold: Hold = Hold.GATE
    other_schedulers: OtherSchedulers = OtherSchedulers.REFUSE


@dataclass(frozen=True, slots=True, kw_only=True)
class Surroundings:
    """The cluster as it is known at this moment, and what an administrator decided.

    Attributes:
        tree: All queues.
        catalog: All classes, Configurations and Instances, by the names that stand for them.
        exists: Whether there is a DeviceClass or a Configuration of a name.
        pods: What he decided about new pods.
    """

    tree: QueueTree
    catalog: Catalog
    exists: Callable[[str], bool]
    settings: AccountingSettings
    pods: PodSettings = PodSettings()
