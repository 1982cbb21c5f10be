"""The output of one view, for programs and for people."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from kube.shapes.pods import NO_STATUS, Pod
from kube.shapes.reading import JsonObject, read_as
from scheduler_plugin.asking.columns import Part
from scheduler_plugin.asking.shapes import REPORTED_CONDITIONS

Key = tuple[str, str]
"""Namespace and name; the namespace of a cluster-scoped object is ""."""


@dataclass(frozen=True, slots=True)
class Shown:
    """The output of one view.

    Attributes:
        plain: The objects for programs.
        parts: The tables and lines for people.
        nothing: The sentence for people if there is no row; "" if the view has no rows.
    """

    plain: Any
    parts: Sequence[Part]
    nothing: str = ""


def condition_lines(obj: JsonObject | Pod) -> tuple[str, ...]:
    """The conditions of a pod that say what it waits for, one line each."""
    status = read_as(Pod, obj).status or NO_STATUS
    return tuple(
        f"{c.type} is {c.status}, {c.reason}: {c.message}"
        for c in status.conditions or ()
        if c.type in REPORTED_CONDITIONS and c.message
    )
