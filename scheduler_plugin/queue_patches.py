"""What is written of a Queue's status: a merge patch of what is not stored yet.

A server-side apply would say the same, and cost the API server three times as much: it compares
all that anybody ever applied, for each of the figures that change with every pod.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from scheduler_plugin.fields import JsonObject
from scheduler_plugin.names import QueueCondition
from scheduler_plugin.queue_status import FIGURES


@dataclass(frozen=True, slots=True)
class StatusPatch:
    """A change of a stored status.

    Attributes:
        fields: As RFC 7396 says it: null removes.
        replaces_conditions: Whether the list of conditions is among them. It is written whole, with
            those of other writers: only to the very version that they were read from.
    """

    fields: JsonObject
    replaces_conditions: bool


def status_patch(status: JsonObject, stored: Mapping[str, Any]) -> StatusPatch:
    """What turns the stored status into the one that a Queue should have."""
    figures = {name: _difference(status.get(name), stored.get(name)) for name in FIGURES}
    fields: dict[str, Any] = {
        name: change
        for name, change in figures.items()
        if change != {} and (name in stored or change is not None)
    }
    if status["observedGeneration"] != stored.get("observedGeneration"):
        fields["observedGeneration"] = status["observedGeneration"]
    conditions = [*_of_others(stored), *status["conditions"]]
    replaces = _by_type(conditions) != _by_type(stored.get("conditions") or ())
    if replaces:
        fields["conditions"] = conditions
    return StatusPatch(fields, replaces)


def _difference(wanted: Mapping[str, Any] | None, stored: object) -> Mapping[str, Any] | None:
    """A merge patch of one map; None where it shall not be there."""
    if wanted is None or not isinstance(stored, Mapping):
        return wanted
    changed = {name: value for name, value in wanted.items() if stored.get(name) != value}
    return changed | {name: None for name in stored if name not in wanted}


def _of_others(stored: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    ours = list(QueueCondition)
    return [found for found in stored.get("conditions") or () if found["type"] not in ours]


def _by_type(conditions: object) -> dict[str, Mapping[str, Any]]:
    found = conditions if isinstance(conditions, list | tuple) else ()
    return {condition["type"]: condition for condition in found}
