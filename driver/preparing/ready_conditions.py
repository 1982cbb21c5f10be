"""The condition `Ready` of a claim's devices: whether containers get a device, and why not.

    PreparedDevice, DevicesView ──readiness──► Readiness ──condition──► entry of `conditions`

A device of which it is unknown whether it is absent, since no handler has answered, keeps its
condition, and is ready without one: a driver that restarts changes no condition. A device that no
node has prepared has no entry.

`lastTransitionTime` is the time at which the status changed, as in all of Kubernetes' conditions;
a device that two nodes prepared has the condition of the node that wrote last.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Literal

from driver.api import NodeName
from driver.names import as_text
from driver.preparing.files.prepared import PreparedDevice
from driver.preparing.grants.device_views import DevicesView
from driver.preparing.grants.health import OFFLINE, is_unknown, problem_of
from kube.shapes.metadata import Condition
from kube.shapes.times import timestamp

READY = "Ready"

Reason = Literal["Prepared", "Offline", "Degraded", "Withheld"]


@dataclass(frozen=True, slots=True)
class Readiness:
    """Whether containers that start get a device.

    Attributes:
        message: A sentence with the node, for users.
        is_known: Whether handlers have answered; otherwise an earlier condition stays.
    """

    is_ready: bool
    reason: Reason
    message: str
    is_known: bool = True

    @property
    def status(self) -> str:
        """The condition's `status`."""
        return "True" if self.is_ready else "False"


def readiness(device: PreparedDevice, view: DevicesView, node: NodeName) -> Readiness:
    """Whether containers on this node get the device."""
    problem = problem_of(device, view)
    if problem:
        reason: Reason = "Offline" if problem == OFFLINE else "Degraded"
        return Readiness(False, reason, f"On node {node}: {problem}.")
    if device.withheld:
        why = as_text(device.withheld)
        return Readiness(False, "Withheld", f"On node {node}: the device {why}.")
    is_known = not is_unknown(device, view)
    return Readiness(True, "Prepared", f"The device is prepared on node {node}.", is_known)


def condition(found: Readiness, before: Condition | None, now: datetime) -> Mapping[str, str]:
    """The condition to write.

    Args:
        found: The readiness.
        before: The condition that is stored or was written before; None for none.
        now: The time.
    """
    if before is not None and not found.is_known:
        status, reason, message = before.status, before.reason, before.message
    else:
        status, reason, message = found.status, found.reason, found.message
    kept = before.last_transition_time if before and before.status == status else None
    return {
        "type": READY,
        "status": status or "",
        "reason": reason or "",
        "message": message or "",
        "lastTransitionTime": kept or timestamp(now),
    }


def says(stored: Condition | None, found: Readiness) -> bool:
    """Whether a stored condition says the readiness, whatever its time.

    Any condition does while the readiness is unknown.
    """
    if stored is None or not found.is_known:
        return stored is not None
    said = stored.status, stored.reason, stored.message
    return said == (found.status, found.reason, found.message)
