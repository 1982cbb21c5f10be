"""Evaluates the selectors that the charges of a snapshot depend on."""

from __future__ import annotations

import asyncio
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

from kube.cel.api import NotEvaluatedError
from scheduler_plugin.accounting.books import Books
from scheduler_plugin.asking.books import books_of
from scheduler_plugin.asking.snapshots import Snapshot
from scheduler_plugin.cluster.cel_processes import evaluate_all
from scheduler_plugin.objects.devices.open_looks import SelectedLook

NO_LOOKS = "the snapshot has no attributes of devices, since no Queue needed them when it was taken"


def with_selected(snapshot: Snapshot, changed: Snapshot | None = None) -> Snapshot:
    """The snapshot with the results; where they cannot be had, with a note that says so.

    Args:
        snapshot: The snapshot.
        changed: What a simulation makes of it, if its charges are the ones that matter.
    """
    books = books_of(changed or snapshot, is_open=True)
    if not books.facts.open_looks:
        return snapshot
    try:
        selected = _evaluated(books, snapshot)
    except NotEvaluatedError as error:
        said = f"Selectors were not evaluated, and count every device: {error}."
        return replace(snapshot, notes=(*snapshot.notes, said))
    return replace(snapshot, selected=(*snapshot.selected, *selected))


def _evaluated(books: Books, snapshot: Snapshot) -> list[SelectedLook]:
    """The results; the caller may be in an event loop, or have none, as one through kubectl."""
    if not snapshot.with_looks:
        raise NotEvaluatedError(NO_LOOKS)
    with ThreadPoolExecutor(max_workers=1) as thread:
        return thread.submit(lambda: asyncio.run(evaluate_all(books))).result()
