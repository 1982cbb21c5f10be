"""Rows as text for people, and as plain objects for programs."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict
from typing import Any

from rich import box
from rich.table import Table
from rich.text import Text

from scheduler_plugin.asking.simulations import QueueChange, Simulation
from scheduler_plugin.viewing.device_rows import DeviceRow, DeviceUser
from scheduler_plugin.viewing.handler_rows import HandlerRow
from scheduler_plugin.viewing.pod_rows import WaitingRow
from scheduler_plugin.viewing.queue_rows import ChargeRow, QueueRow
from scheduler_plugin.viewing.rules import RuleRow
from scheduler_plugin.viewing.why import Figure, Why

BAR = 12
SHOWN = 2
WRAPPED = frozenset({"USERS", "MESSAGE", "BECAUSE", "PODS", "EVICTED", "USED BY"})
NOTHING = "-"


Cell = Text | str | int | None
"""Of a table: a name that is empty is shown as nothing."""

Row = QueueRow | ChargeRow | DeviceRow | HandlerRow | Why | Simulation


def objects(rows: Iterable[Row]) -> list[dict[str, Any]]:
    """As JSON and YAML have them."""
    return [asdict(row) for row in rows]


def queue_table(
    rows: Sequence[QueueRow], shares: Mapping[tuple[str, str], int] | None = None
) -> Table:
    """The tree; of each class a bar of usage against the limit, else the quota.

    With `shares`, by queue and class, the fair share has a column of its own.
    """
    heads = ("QUEUE", "CLASS", "USAGE", "", "QUOTA", "LIMIT", "WAITING", "NON-PREEMPTIBLE")
    lines: list[tuple[Cell, ...]] = []
    before = ""
    for row in rows:
        name = "" if row.queue == before else f"{'  ' * row.depth}{row.queue}"
        before = row.queue
        cells = (Text(name), row.device_class, row.usage, _bar(row), row.quota, row.limit)
        share = () if shares is None else (shares.get((row.queue, row.device_class), 0),)
        lines.append((*cells, row.requested - row.usage, row.non_preemptible, *share))
    return _table(heads if shares is None else (*heads, "SHARE"), lines)


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


def charge_table(rows: Sequence[ChargeRow]) -> Table:
    """One line for each claim or pod."""
    heads = ("KIND", "NAMESPACE", "NAME", "CHARGED TO", "COST", "USERS")
    lines = []
    for row in rows:
        cost = ", ".join(f"{key}: {amount}" for key, amount in row.cost)
        users = ", ".join(row.users)
        lines.append((row.kind, row.namespace, row.name, row.payer, cost, users))
    return _table(heads, lines)


def device_table(rows: Sequence[DeviceRow], *, wide: bool = False) -> Table:
    """One line for each device; with `wide` where it is published, and all who use it."""
    heads = ("DEVICE", "CONFIGURATION", "PATH", "NODES", "STATE", "SLOTS", "USED BY")
    lines = []
    for row in rows:
        cells = [
            row.name,
            row.configuration,
            row.path,
            _several(row.nodes, wide=wide),
            f"{row.state} {row.detail}" if row.detail else row.state,
            f"{row.used}/{row.slots}",
            _several([_user(user) for user in row.users], wide=wide),
        ]
        if wide:
            pods = [pod for user in row.users for pod in user.pods]
            cells += [row.driver, row.pool, row.instance, ", ".join(dict.fromkeys(pods))]
        lines.append(cells)
    return _table((*heads, "DRIVER", "POOL", "INSTANCE", "PODS") if wide else heads, lines)


def _user(user: DeviceUser) -> str:
    times = f" x{user.slots}" if user.slots > 1 else ""
    return f"{user.what.removeprefix('ResourceClaim ')}{times} ({user.payer or 'nobody pays'})"


def _several(names: Sequence[str], *, wide: bool) -> str:
    """The first of them, and how many more; all where there is room."""
    if wide or len(names) <= SHOWN:
        return ", ".join(names)
    return f"{', '.join(names[:SHOWN])} +{len(names) - SHOWN}"


def waiting_table(rows: Sequence[WaitingRow]) -> Table:
    """One line for each pod that waits."""
    lines = ((row.pod, row.queue, row.created, row.reason, row.sentence) for row in rows)
    return _table(("POD", "QUEUE", "SINCE", "REASON", "BECAUSE"), lines)


def handler_table(rows: Sequence[HandlerRow]) -> Table:
    """One line for each handler, Configuration and node."""
    heads = ("HANDLER", "CONFIGURATION", "NODE", "STATE", "REGISTERED", "SINCE", "MESSAGE")
    lines = []
    for row in rows:
        cells = (row.handler, row.configuration, row.node, row.state)
        lines.append((*cells, "yes" if row.registered else "no", row.since, row.message))
    return _table(heads, lines)


def why_text(found: Why) -> list[Text | Table]:
    """The sentence first, and then what it rests on, and what would have to change."""
    said: list[Text | Table] = [
        Text(f"{found.pod}: {found.reason}", "bold"),
        Text(found.sentence),
        Text(f"Its queue: {found.queue or 'none'}."),
        *map(Text, found.claims),
    ]
    if found.figures:
        said.append(_figures(found.figures))
    if found.rules:
        said.append(_rules(found.rules))
    said += _list("What would have to change:", found.remedies)
    said += _list("Evictions:", (found.reclaim,) if found.reclaim else ())
    return said + _list("What it is told:", found.told)


def _rules(rules: Sequence[RuleRow]) -> Table:
    holds: dict[bool | None, Cell] = {
        None: "",
        True: Text("yes", "green"),
        False: Text("no", "bold red"),
    }
    lines = ((row.reason, holds[row.holds], row.sentence) for row in rules)
    return _table(("RULE", "HOLDS", "BECAUSE"), lines)


def _list(head: str, sentences: Sequence[str]) -> list[Text | Table]:
    if not sentences:
        return []
    return [Text(head, "bold"), *(Text(f"  {sentence}") for sentence in sentences)]


def simulation_text(found: Simulation) -> list[Text | Table]:
    """What would become of the given pods, and then what else would differ."""
    said: list[Text | Table] = []
    for pod in found.pods:
        said += [Text(f"{pod.pod}: {pod.reason}", "bold"), Text(pod.sentence)]
        said += [
            Text(f"  charged to {c.queue}: {c.added} {c.device_class}, for {c.what}")
            for c in pod.charged
        ]
        said += [Text(f"  evicted: {name}") for name in pod.evicted]
    for lost in found.devices:
        said.append(Text(f"{lost.device.name} ({lost.device.path}): {lost.sentence}"))
    if found.waiting:
        lines = (
            (one.pod, one.before, one.after, one.sentence, ", ".join(one.evicted))
            for one in found.waiting
        )
        said.append(_table(("WAITING POD", "NOW", "THEN", "BECAUSE", "EVICTED"), lines))
    said += [_queue_changes(found.queues)] if found.queues else []
    return said or [Text("Nothing would differ.")]


def _queue_changes(changes: Sequence[QueueChange]) -> Table:
    lines: list[tuple[Cell, ...]] = []
    for change in changes:
        row = change.after or change.before
        assert row is not None, "one of them is there"
        figures = (_arrow(change, name) for name in ("usage", "quota", "limit"))
        lines.append((row.queue, row.device_class, *figures, Text(change.problem)))
    return _table(("QUEUE", "CLASS", "USAGE", "QUOTA", "LIMIT", ""), lines)


def _arrow(change: QueueChange, figure: str) -> str:
    rows = (change.before, change.after)
    was, now = (NOTHING if row is None else _said(getattr(row, figure)) for row in rows)
    return was if was == now else f"{was} -> {now}"


def _figures(figures: Sequence[Figure]) -> Table:
    lines = ((f.queue, f.device_class, f.usage, f.added, f.quota, f.limit) for f in figures)
    return _table(("QUEUE", "CLASS", "USAGE", "IT ADDS", "QUOTA", "LIMIT"), lines)


def _table(heads: Sequence[str], lines: Iterable[Iterable[Cell]]) -> Table:
    table = Table(box=box.SIMPLE_HEAD, show_edge=False, pad_edge=False, header_style="bold")
    for head in heads:
        table.add_column(head, no_wrap=head not in WRAPPED, overflow="fold")
    for line in lines:
        table.add_row(*(cell if isinstance(cell, Text) else Text(_said(cell)) for cell in line))
    return table


def _said(value: str | int | None) -> str:
    """A ceiling that is None has no end."""
    return "none" if value is None else str(value) or NOTHING
