"""Rows with amounts of one entry of a queue, as people, programs and pictures need them.

A row has the key of the entry as `device_class`, and whole numbers: devices, or thousandths of the
unit of a measure.

    people      `40Gi`, `3`
    programs    "40Gi" where there is a measure, else 3
    pictures    42949672960 and 3, and beside them the texts of a measure
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import fields
from typing import TYPE_CHECKING, Any

from scheduler_plugin.objects.amounts import Charges, ResourceKey
from scheduler_plugin.objects.measures import (
    amount_number,
    amount_text,
    amount_value,
    is_measured,
)

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

    from scheduler_plugin.accounting.books_views import BooksView
    from scheduler_plugin.accounting.charges.entries import ClaimEntry
    from scheduler_plugin.objects.names import QueueName

AMOUNTS = frozenset({"usage", "non_preemptible", "requested", "added", "quota", "limit", "share"})
"""The fields of rows that are amounts; None is unlimited."""

Cost = tuple[tuple[str, int | str], ...]
"""Names of entries, each with a number of devices or a quantity."""


def figure_text(key: ResourceKey, amount: int | None) -> str:
    """The text of a figure; `none` for an unlimited one."""
    return "none" if amount is None else amount_text(key, amount)


def value_fields(pairs: Iterable[tuple[str, Any]]) -> dict[str, Any]:
    """The fields of a row for programs; a `dict_factory` of dataclasses."""
    found = dict(pairs)
    key = found.get("device_class")
    if key is None:
        return found
    amounts = {name: amount_value(key, found[name]) for name in _amounts(found)}
    return {**found, "device_class": str(key), **amounts}


def number_fields(row: DataclassInstance, **more: int) -> dict[str, Any]:
    """The fields of a row for pictures; `texts` are the amounts of a measure."""
    found = {each.name: getattr(row, each.name) for each in fields(row)} | more
    key = found["device_class"]
    amounts = {name: found[name] for name in _amounts(found)}
    numbers = {name: amount_number(key, amount) for name, amount in amounts.items()}
    shown = {**found, "device_class": str(key), **numbers}
    if is_measured(key):
        shown["texts"] = {name: amount_text(key, amount) for name, amount in amounts.items()}
        if "requested" in amounts:
            waits = amounts["requested"] - amounts["usage"]
            shown["texts"]["waiting"] = amount_text(key, waits)
    return shown


def _amounts(found: dict[str, Any]) -> list[str]:
    return [name for name, value in found.items() if name in AMOUNTS and value is not None]


def cost_of_claim(books: BooksView, entry: ClaimEntry) -> Cost:
    """What a claim costs the queue that is charged, or will be."""
    return cost_in(books, queue_of_cost(entry), entry.cost)


def queue_of_cost(entry: ClaimEntry) -> QueueName:
    """The queue that is charged for a claim, or will be; "" if that is not known."""
    return entry.owner or entry.waits_for or next(iter(entry.orphan_of), entry.owner)


def cost_in(books: BooksView, queue: QueueName, cost: Charges) -> Cost:
    """A cost by the names that entries have in a queue."""
    keys = books.facts.tree.shown_keys(queue, [key for key, _ in cost])
    return tuple((str(key), amount_value(key, cost[key])) for key in keys)
