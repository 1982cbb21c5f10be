"""Rows as text for people, and as plain objects for programs."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict
from typing import Any

from rich import box
from rich.table import Table
from rich.text import Text

from scheduler_plugin.asking.simulations import QueueChange, Simulation
from scheduler_plugin.viewing.device_rows import DeviceRow, DeviceUser
from scheduler_plugin.viewing.handler_rows import HandlerRow
from scheduler_plugin.viewing.queue_rows import ChargeRow, QueueRow
from scheduler_plugin.viewing.rules import RuleRow
from scheduler_plugin.viewing.waiting_rows import WaitingRow
from scheduler_plugin.viewing.why import Figure, Why

BAR = 12
SHOWN = 2
WRAPPED = frozenset({"USERS", "MESSAGE", "BECAUSE", "PODS", "EVICTED", "USED BY"})
NOTHING = "-"


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
    table = _table(*heads, *(() if shares is None else ("SHARE",)))
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
            *(() if shares is None else (str(shares.get((row.queue, row.device_class), 0)),)),
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


def device_table(rows: Sequence[DeviceRow], *, wide: bool = False) -> Table:
    """One line for each device; with `wide` where it is published, and all who use it."""
    heads = ("DEVICE", "CONFIGURATION", "PATH", "NODES", "STATE", "SLOTS", "USED BY")
    table = _table(*heads, *(("DRIVER", "POOL", "INSTANCE", "PODS") if wide else ()))
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
        table.add_row(*(Text(cell or NOTHING) for cell in cells))
    return table


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
    table = _table("POD", "QUEUE", "SINCE", "REASON", "BECAUSE")
    for row in rows:
        cells = (row.pod, row.queue, row.created, row.reason, row.sentence)
        table.add_row(*(Text(cell or NOTHING) for cell in cells))
    return table


def handler_table(rows: Sequence[HandlerRow]) -> Table:
    """One line for each handler, Configuration and node."""
    table = _table("HANDLER", "CONFIGURATION", "NODE", "STATE", "REGISTERED", "SINCE", "MESSAGE")
    for row in rows:
        registered = "yes" if row.registered else "no"
        cells = (row.handler, row.configuration, row.node, row.state, registered)
        table.add_row(*(Text(cell or NOTHING) for cell in (*cells, row.since, row.message)))
    return table


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
    table = _table("RULE", "HOLDS", "BECAUSE")
    for row in rules:
        holds = {None: Text(NOTHING), True: Text("yes", "green"), False: Text("no", "bold red")}
        table.add_row(Text(row.reason), holds[row.holds], Text(row.sentence))
    return table


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
        table = _table("WAITING POD", "NOW", "THEN", "BECAUSE", "EVICTED")
        for one in found.waiting:
            cells = (one.pod, one.before, one.after, one.sentence, ", ".join(one.evicted))
            table.add_row(*(Text(cell or NOTHING) for cell in cells))
        said.append(table)
    said += [_queue_changes(found.queues)] if found.queues else []
    return said or [Text("Nothing would differ.")]


def _queue_changes(changes: Sequence[QueueChange]) -> Table:
    table = _table("QUEUE", "CLASS", "USAGE", "QUOTA", "LIMIT", "")
    for change in changes:
        row = change.after or change.before
        assert row is not None, "one of them is there"
        cells = [
            _arrow(change, lambda r: str(r.usage)),
            _arrow(change, lambda r: ceiling(r.quota)),
            _arrow(change, lambda r: ceiling(r.limit)),
        ]
        names = (Text(row.queue), Text(row.device_class or NOTHING))
        table.add_row(*names, *cells, Text(change.problem))
    return table


def _arrow(change: QueueChange, of: Callable[[QueueRow], str]) -> str:
    was, now = (NOTHING if row is None else of(row) for row in (change.before, change.after))
    return was if was == now else f"{was} -> {now}"


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
        table.add_column(head, no_wrap=head not in WRAPPED, overflow="fold")
    return table
