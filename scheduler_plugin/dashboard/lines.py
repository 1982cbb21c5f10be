"""The world as lines of the page: the rows of `kubectl moorage` as JSON.

All functions are generators that yield None after some work without a line. The caller may pause
them at any point. Later lines are of the later moment, and deleted objects are left out.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from heapq import merge
from typing import TypeVar

import msgspec

from scheduler_plugin.accounting.world_views import WorldView
from scheduler_plugin.dashboard.snapshots import Line
from scheduler_plugin.objects.amounts import Charges
from scheduler_plugin.objects.names import QueueName
from scheduler_plugin.reclaiming.placement.offered_devices import OfferedDevices
from scheduler_plugin.viewing.free_devices import FreeDevices, free_devices
from scheduler_plugin.viewing.instance_rows import InstanceRow, instance_rows
from scheduler_plugin.viewing.measured_rows import number_fields
from scheduler_plugin.viewing.pod_rows import pod_row
from scheduler_plugin.viewing.queue_rows import queue_rows
from scheduler_plugin.viewing.sharing_rows import claim_row, sharer_counts

T = TypeVar("T")

AT_ONCE = 200
"""How many objects are sorted before other tasks run."""

Lines = Iterator[Line | None]

_encode = msgspec.json.Encoder().encode


def queue_lines(world: WorldView, shares: Callable[[QueueName], Charges]) -> Lines:
    """The tree, a line for each entry of each queue; a filter matches queues above it, too."""
    shown = QueueName("")
    for row in queue_rows(world):
        share = shares(row.queue)[row.device_class]
        path = " ".join(world.facts.tree.path(row.queue))
        body = {**number_fields(row, share=share), "is_first": row.queue != shown}
        shown = row.queue
        yield Line(_encode(body), f"{path} {row.device_class}".lower())


def claim_lines(world: WorldView) -> Lines:
    """The accounted claims by name, with their sharers by queue for viewers of pods."""
    for claim in _in_order(world.facts.claims(), lambda claim: claim.key):
        row = claim_row(world, claim) if claim is not None else None
        if claim is None or row is None:
            yield None
            continue
        counts = sharer_counts(world, claim)
        words = (row.namespace, row.name, row.owner, *(key for key, _ in row.cost), *row.devices)
        yield Line(
            _encode(row),
            " ".join(words).lower(),
            _encode({"sharers": counts}),
            " ".join(queue for queue, _ in counts).lower(),
            row.namespace,
        )


def device_lines(world: WorldView, devices: OfferedDevices | None = None) -> Lines:
    """The devices by node, with their claims for viewers of claims; see `instance_rows`."""
    for row in instance_rows(world, devices):
        yield _device_line(row) if row is not None else None


def _device_line(row: InstanceRow) -> Line:
    fields = msgspec.to_builtins(row)
    # Not every viewer of devices may see claims.
    claims = fields.pop("claims")
    where = (row.driver, row.pool, *row.nodes, *row.published_on)
    words = (row.name, row.configuration, *where, row.state, *row.taints)
    return Line(
        _encode(fields),
        " ".join(words).lower(),
        _encode({"claims": claims}),
        " ".join(claim for claim, _ in row.claims).lower(),
    )


def waiting_lines(world: WorldView, note: Callable[[FreeDevices], None]) -> Lines:
    """The waiting pods, those that have waited longest first.

    `note` is called with the devices on which the verdicts are based.
    """
    free = None
    for found in free_devices(world):
        free = found
        yield None
    assert free is not None, "the devices come last"
    note(free)
    for pod in _in_order(world.facts.pods(), lambda pod: (pod.created, pod.namespace, pod.name)):
        row = pod_row(world, pod, free) if pod is not None else None
        if row is None:
            yield None
            continue
        words = (row.namespace, row.name, row.queue, row.reason)
        yield Line(_encode(row), " ".join(words).lower(), namespace=row.namespace)


def _in_order(found: Iterable[T], key: Callable[[T], tuple[str, ...]]) -> Iterator[T | None]:
    """The objects sorted by a key; yields None after each part that is sorted."""
    all_of_it = list(found)
    parts = []
    for start in range(0, len(all_of_it), AT_ONCE):
        parts.append(sorted(all_of_it[start : start + AT_ONCE], key=key))
        yield None
    yield from merge(*parts, key=key)
