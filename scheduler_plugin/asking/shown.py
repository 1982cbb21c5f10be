"""What one view shows: the same for programs, and for people."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from kube.shapes.reading import JsonObject
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


def told_by(pod: JsonObject) -> tuple[str, ...]:
    """What the conditions of a pod say of what it waits for."""
    return tuple(
        f"{c['type']} is {c.get('status')}, {c.get('reason')}: {c['message']}"
        for c in (pod.get("status") or {}).get("conditions") or ()
        if c.get("type") in TOLD_CONDITIONS and c.get("message")
    )
