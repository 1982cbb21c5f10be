"""Rows as text for people, and as plain objects for programs."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import asdict
from typing import Any

from rich import box
from rich.table import Table
from rich.text import Text

from scheduler_plugin.viewing.queue_rows import ChargeRow, QueueRow
from scheduler_plugin.viewing.why import Figure, Why

BAR = 12
NOTHING = "-"


def objects(rows: Iterable[QueueRow | ChargeRow | Why]) -> list[dict[str, Any]]:
    """As JSON and YAML have them."""
    return [asdict(row) for row in rows]


def queue_table(rows: Sequence[QueueRow]) -> Table:
    """The tree; of each class a bar of usage against the limit, else the quota."""
    table = _table("QUEUE", "CLASS", "USAGE", "", "QUOTA", "LIMIT", "WAITING", "NON-PREEMPTIBLE")
    before = ""
    for row in rows:
        name = "" if row.queue == before else f"{'  ' * row.depth}{row.queue}"
        before = row.queue
        table.add_row(
            Text(name),
            Text(row.device_class or NOTHING),
            str(row.usage),
            _bar(row),
            ceiling(row.quota),
            ceiling(row.limit),
            str(row.requested - row.usage),
            str(row.non_preemptible),
        )
    return table


def _bar(row: QueueRow) -> Text:
    """Up to the quota in one colour, beyond it in another."""
    most = row.limit if row.limit is not None else row.quota
    if not most:
        return Text()
    full = min(BAR, round(BAR * row.usage / most))
    within = full if row.quota is None else min(full, round(BAR * row.quota / most))
    bar = Text("█" * within, "green")
    bar.append("█" * (full - within), "yellow")
    bar.append("░" * (BAR - full), "dim")
    return bar


def ceiling(most: int | None) -> str:
    return "none" if most is None else str(most)


def charge_table(rows: Sequence[ChargeRow]) -> Table:
    """One line for each claim or pod."""
    table = _table("KIND", "NAMESPACE", "NAME", "CHARGED TO", "COST", "USERS")
    for row in rows:
        cost = ", ".join(f"{key}: {amount}" for key, amount in row.cost)
        cells = (row.kind, row.namespace, row.name, row.payer, cost, ", ".join(row.users))
        table.add_row(*(Text(cell or NOTHING) for cell in cells))
    return table


def why_text(found: Why) -> list[Text | Table]:
    """The sentence first, and then what it rests on."""
    said: list[Text | Table] = [
        Text(f"{found.pod}: {found.reason}", "bold"),
        Text(found.sentence),
        Text(f"Its queue: {found.queue or 'none'}."),
        *map(Text, found.claims),
    ]
    return [*said, _figures(found.figures)] if found.figures else said


def _figures(figures: Sequence[Figure]) -> Table:
    table = _table("QUEUE", "CLASS", "USAGE", "IT ADDS", "QUOTA", "LIMIT")
    for row in figures:
        table.add_row(
            Text(row.queue),
            Text(row.device_class),
            str(row.usage),
            str(row.added),
            ceiling(row.quota),
            ceiling(row.limit),
        )
    return table


def _table(*heads: str) -> Table:
    table = Table(box=box.SIMPLE_HEAD, show_edge=False, pad_edge=False, header_style="bold")
    for head in heads:
        table.add_column(head, no_wrap=head != "USERS", overflow="fold")
    return table
