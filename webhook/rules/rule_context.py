"""Input of the rules besides the object itself: stored objects, and settings."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum

from scheduler_plugin.accounting.api import QueueTree
from scheduler_plugin.objects.api import Catalog
from scheduler_plugin.objects.names import AccountingSettings


class Hold(StrEnum):
    """How pods wait for quota."""

    GATE = "Gate"
    RETRY = "Retry"


class OtherSchedulers(StrEnum):
    """Whether pods of other schedulers may ask for accounted devices."""

    REFUSE = "Refuse"
    ALLOW = "Allow"


@dataclass(frozen=True, slots=True, kw_only=True)
class PodSettings:
    """Settings of an administrator for new pods.

    Attributes:
        scheduler_names: The schedulers with accounting. Pods of namespaces that opt in get the
            first one.
        hold: Whether those pods get a gate, or the scheduler retries them until they fit.
        other_schedulers: Whether pods of other schedulers may ask for accounted devices.
    """

    scheduler_names: tuple[str, ...] = ("moorage",)
    hold: Hold = Hold.GATE
    other_schedulers: OtherSchedulers = OtherSchedulers.REFUSE


@dataclass(frozen=True, slots=True, kw_only=True)
class RuleContext:
    """The stored objects of the cluster, and the settings of an administrator.

    Attributes:
        tree: All queues.
        catalog: All classes, Configurations and Instances, by name.
        exists: Whether a DeviceClass or a Configuration of a name exists.
        settings: Settings of accounting.
        pods: Settings for new pods.
    """

    tree: QueueTree
    catalog: Catalog
    exists: Callable[[str], bool]
    settings: AccountingSettings
    pods: PodSettings = PodSettings()
