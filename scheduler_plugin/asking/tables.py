"""Rows as text for people, and as plain objects for programs."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict
from datetime import datetime
from typing import TYPE_CHECKING, Any

from kube.shapes.times import read_time
from scheduler_plugin.asking.ages import ago
from scheduler_plugin.asking.columns import (
    BOLD,
    DIM,
    GREEN,
    NOTHING,
    RED,
    YELLOW,
    Cell,
    Part,
    Styled,
    Table,
    styled,
    table,
)
from scheduler_plugin.viewing.measured_rows import figure_text, value_fields

if TYPE_CHECKING:  # Each command imports what it shows, and nothing that another one shows.
    from scheduler_plugin.asking.simulations import QueueChange, Simulation
    from scheduler_plugin.objects.amounts import ResourceKey
    from scheduler_plugin.objects.names import QueueName
    from scheduler_plugin.viewing.device_rows import DeviceRow, DeviceUser
    from scheduler_plugin.viewing.handler_rows import HandlerRow
    from scheduler_plugin.viewing.queue_rows import ChargeRow, QueueRow
    from scheduler_plugin.viewing.rules import RuleRow
    from scheduler_plugin.viewing.why import Figure, Why

    Row = QueueRow | ChargeRow | DeviceRow | HandlerRow | Why | Simulation

BAR = 12
SHOWN = 2
SINCE = "since "
"""The prefix of a device row's detail if the device is offline."""


def objects(rows: Iterable[Row]) -> list[dict[str, Any]]:
    """The rows as objects for JSON and YAML."""
    return [asdict(row, dict_factory=value_fields) for row in rows]


def queue_table(
    rows: Sequence[QueueRow],
    shares: Mapping[tuple[QueueName, ResourceKey], int] | None = None,
    *,
    is_tree: bool = True,
) -> Table:
    """The tree of queues; a bar shows usage of each class against the limit, else the quota.

    `shares` are fair shares by queue and entry; with them the table has a column SHARE.
    """
    heads = ("QUEUE", "CLASS", "USAGE", "UTILIZATION", "QUOTA", "LIMIT", "WAITING")
    last = ("NON-PREEMPTIBLE",) if shares is None else ("NON-PREEMPTIBLE", "SHARE")
    lines: list[tuple[Cell, ...]] = []
    for row in rows:
        name = f"{'  ' * row.depth if is_tree else ''}{row.queue}"
        key = row.device_class
        usage, quota, limit = (figure_text(key, n) for n in (row.usage, row.quota, row.limit))
        waiting, kept = row.requested - row.usage, row.non_preemptible
        more = (waiting, kept, *(() if shares is None else (shares.get((row.queue, key), 0),)))
        cells = (name, str(key), usage, _bar(row), quota, limit)
        lines.append((*cells, *(figure_text(key, amount) for amount in more)))
    return table((*heads, *last), lines)


def _bar(row: QueueRow) -> Styled:
    """The bar of utilization: one colour up to the quota, another above it."""
    most = row.limit if row.limit is not None else row.quota
    if not most:
        return Styled(())
    full = min(BAR, round(BAR * row.usage / most))
    within = full if row.quota is None else min(full, round(BAR * row.quota / most))
    return Styled(
        (("█" * within, GREEN), ("█" * (full - within), YELLOW), ("░" * (BAR - full), DIM))
    )


def charge_table(
    rows: Sequence[ChargeRow], devices: Mapping[tuple[str, str], Sequence[str]] | None = None
) -> Table:
    """One line for each claim or pod; `devices`, by namespace and name, become a column."""
    heads = ("KIND", "NAMESPACE", "NAME", "CHARGED TO", "COST")
    lines: list[tuple[Cell, ...]] = []
    for row in rows:
        cost = ", ".join(f"{key}: {amount}" for key, amount in row.cost)
        cells = (row.kind, row.namespace, row.name, row.payer, cost)
        given = () if devices is None else (_listed(devices.get((row.namespace, row.name), ())),)
        lines.append((*cells, *given, _listed(row.users)))
    return table((*heads, *(() if devices is None else ("DEVICES",)), "USERS"), lines)


def _listed(names: Sequence[str]) -> str:
    return ", ".join(names)


def device_table(rows: Sequence[DeviceRow], now: datetime, *, wide: bool = False) -> Table:
    """One line for each device; `wide` adds where it is published, and all of its users."""
    heads = ("DEVICE", "CONFIGURATION", "PATH", "NODES", "STATE", "SLOTS", "USED BY")
    lines: list[tuple[Cell, ...]] = []
    for row in rows:
        cells = (
            row.name,
            row.configuration,
            row.path,
            _several(row.nodes, wide=wide),
            _state(row, now),
            _slots(row),
            _several([_user(user) for user in row.users], wide=wide),
        )
        pods = dict.fromkeys(pod for user in row.users for pod in user.pods)
        more = (row.driver, row.pool, row.instance, ", ".join(pods)) if wide else ()
        lines.append((*cells, *more))
    return table((*heads, "DRIVER", "POOL", "INSTANCE", "PODS") if wide else heads, lines)


def _slots(row: DeviceRow) -> str:
    """The slots in use; or, of a device that claims divide, its capacities."""
    divided = [f"{found.name} {found.used}/{found.has}" for found in row.capacities]
    return ", ".join(divided) or f"{row.used}/{row.slots}"


def _state(row: DeviceRow, now: datetime) -> str:
    """The state with its age, as `Offline (5m ago)`: kubectl writes restarts like this."""
    since = row.detail.removeprefix(SINCE)
    if row.detail.startswith(SINCE) and read_time(since) is not None:
        return f"{row.state} ({ago(since, now)})"
    return f"{row.state} {row.detail}".rstrip()


def _user(user: DeviceUser) -> str:
    times = f" x{user.slots}" if user.slots > 1 else ""
    payer = user.payer or "no queue is charged"
    return f"{user.what.removeprefix('ResourceClaim ')}{times} ({payer})"


def _several(names: Sequence[str], *, wide: bool) -> str:
    """The first names, and how many more there are; all names with `wide`."""
    if wide or len(names) <= SHOWN:
        return _listed(names)
    return f"{_listed(names[:SHOWN])} + {len(names) - SHOWN} more..."


def handler_table(rows: Sequence[HandlerRow], now: datetime) -> Table:
    """One line for each handler, Configuration and node."""
    heads = ("HANDLER", "CONFIGURATION", "NODE", "STATE", "REGISTERED", "SINCE", "MESSAGE")
    lines = []
    for row in rows:
        cells = (row.handler, row.configuration, row.node, row.state)
        since = ago(row.since, now) if row.since else ""
        lines.append((*cells, "yes" if row.registered else "no", since, row.message))
    return table(heads, lines)


def why_text(found: Why, not_read: Sequence[str] = ()) -> list[Part]:
    """The reason and sentence, then the figures and checks, then the remedies.

    If something could not be read, a pod without a queue may have one.
    """
    no_queue = "not known" if not_read else "none"
    said: list[Part] = [
        styled(f"{found.pod}: {found.reason}", BOLD),
        found.sentence,
        f"Queue: {found.queue or no_queue}.",
        *found.claims,
    ]
    said += ["", _figures(found.figures)] if found.figures else []
    said += ["", _checks(found.rules)] if found.rules else []
    said += _list("What would have to change:", found.remedies)
    for row in found.rules:
        if row.remedies and row.reason != found.reason:
            said += _list(f"What would have to change for {row.reason}:", row.remedies)
    said += _list("Evictions:", (found.reclaim,) if found.reclaim else ())
    said += _list("Conditions and Events:", found.told)
    return said + _list("Not read:", not_read)


def _checks(rules: Sequence[RuleRow]) -> Table:
    """The checks that fail, then those that pass, then the number of those not made, and why."""
    results: dict[bool | None, Cell] = {
        False: styled("FAIL", RED),
        True: styled("pass", GREEN),
        None: "",
    }
    places = list(results)
    ordered = sorted(rules, key=lambda row: places.index(row.holds))
    skipped = [row for row in ordered if row.holds is None]
    looked_at = [row for row in ordered if row.holds is not None]
    lines: list[tuple[Cell, ...]] = [(r.reason, results[r.holds], r.sentence) for r in looked_at]
    if skipped:
        lines.append((f"{len(skipped)} more", "", skipped[0].sentence))
    return table(("CHECK", "RESULT", "BECAUSE"), lines)


def _list(head: str, sentences: Sequence[str]) -> list[Part]:
    return ["", styled(head, BOLD), *(f"  {one}" for one in sentences)] if sentences else []


def simulation_text(found: Simulation) -> list[Part]:
    """The verdicts on the given pods, then everything else that would change."""
    said: list[Part] = []
    for pod in found.pods:
        said += [styled(f"{pod.pod}: {pod.reason}", BOLD), pod.sentence]
        said += [
            f"  charged to {c.queue}: {figure_text(c.device_class, c.added)} {c.device_class},"
            f" for {c.what}"
            for c in pod.charged
        ]
        said += [f"  evicted: {name}" for name in pod.evicted]
    for lost in found.devices:
        said.append(f"{lost.device.name} ({lost.device.path}): {lost.sentence}")
    if found.waiting:
        lines = (
            (one.pod, one.before, one.after, one.sentence, ", ".join(one.evicted))
            for one in found.waiting
        )
        said.append(table(("WAITING POD", "NOW", "THEN", "BECAUSE", "EVICTED"), lines))
    said += [_queue_changes(found.queues)] if found.queues else []
    return [*(said or ["Nothing would change."]), *found.notes]


def _queue_changes(changes: Sequence[QueueChange]) -> Table:
    lines: list[tuple[Cell, ...]] = []
    for change in changes:
        row = change.after or change.before
        assert row is not None, "one of the rows exists"
        figures = (_arrow(change, name) for name in ("usage", "quota", "limit"))
        lines.append((row.queue, str(row.device_class), *figures, change.problem))
    return table(("QUEUE", "CLASS", "USAGE", "QUOTA", "LIMIT", "PROBLEM"), lines)


def _arrow(change: QueueChange, figure: str) -> str:
    rows = (change.before, change.after)
    was, now = (
        NOTHING if row is None else figure_text(row.device_class, getattr(row, figure))
        for row in rows
    )
    return was if was == now else f"{was} -> {now}"


def _figures(figures: Sequence[Figure]) -> Table:
    lines: list[tuple[Cell, ...]] = []
    for f in figures:
        amounts = (f.usage, f.added, f.quota, f.limit)
        key = f.device_class
        lines.append((f.queue, str(key), *(figure_text(key, amount) for amount in amounts)))
    return table(("QUEUE", "CLASS", "USAGE", "ADDED", "QUOTA", "LIMIT"), lines)
