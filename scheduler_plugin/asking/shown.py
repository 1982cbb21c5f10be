"""What one view shows: the same for programs, and for people."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from kube.shapes.pods import NO_STATUS, Pod
from kube.shapes.reading import JsonObject, read_as
from scheduler_plugin.asking.columns import Part
from scheduler_plugin.asking.shapes import TOLD_CONDITIONS

Key = tuple[str, str]
"""Namespace and name; "" for the namespace of what has none."""


@dataclass(frozen=True, slots=True)
class Shown:
    """What one view shows.

    Attributes:
        plain: For programs.
        parts: For people.
        nothing: What people are told where there is no row; "" where that is no question.
    """

    plain: Any
    parts: Sequence[Part]
    nothing: str = ""


def told_by(obj: JsonObject | Pod) -> tuple[str, ...]:
    """What the conditions of a pod say of what it waits for."""
    status = read_as(Pod, obj).status or NO_STATUS
    return tuple(
        f"{c.type} is {c.status}, {c.reason}: {c.message}"
        for c in status.conditions or ()
        if c.type in TOLD_CONDITIONS and c.message
    )
