"""Evaluates the selectors that the charges of a snapshot depend on."""

from __future__ import annotations

from dataclasses import replace

from kube.cel.api import NotEvaluatedError
from scheduler_plugin.asking.books import books_of
from scheduler_plugin.asking.snapshots import Snapshot
from scheduler_plugin.cluster.cel_processes import evaluate_all


async def with_selected(snapshot: Snapshot) -> Snapshot:
    """The snapshot with the results; where they cannot be had, with a note that says so."""
    try:
        selected = await evaluate_all(books_of(snapshot, is_open=True))
    except NotEvaluatedError as error:
        said = f"Selectors of Queues were not evaluated, and count every device: {error}."
        return replace(snapshot, notes=(*snapshot.notes, said))
    return replace(snapshot, selected=tuple(selected))
