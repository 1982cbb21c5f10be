"""Prometheus: what queues have, as the ledger says it when somebody asks.

There is a row for each queue and class that the queue lists, uses or asks for: as many as the
administrator's Queues make. Beyond `MOST_ROWS` the rest is left out, and it is told how many.
A large cluster is read in steps, so that kube-scheduler is answered in between.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Callable, Mapping
from itertools import islice

from prometheus_client.metrics_core import GaugeMetricFamily, Metric

from scheduler_plugin.accounting.figures.queue_status import reclaimable
from scheduler_plugin.accounting.figures.share_figures import ShareFigures
from scheduler_plugin.accounting.world import World
from scheduler_plugin.objects.amounts import Ceiling, ResourceKey
from scheduler_plugin.objects.names import Queue, QueueName

MOST_ROWS = 10_000
IN_ONE_STEP = 200
"""Queues or claims that are looked at before others have their turn."""

PREFIX = "moorage_scheduler_plugin_"
ROW = ("queue", "device_class")

MEANINGS: Mapping[str, tuple[tuple[str, ...], str]] = {
    "queue_usage": (ROW, "What a queue is charged for, those below it included."),
    "queue_usage_non_preemptible": (ROW, "What of it non-preemptible pods use."),
    "queue_requested": (ROW, "Usage, and what waiting pods ask for."),
    "queue_quota": (ROW, "The queue's quota; +Inf for none."),
    "queue_limit": (ROW, "The queue's limit; +Inf for none."),
    "queue_share": (ROW, "What it would have if devices were given anew; a few seconds old."),
    "queue_reclaimable": (
        ROW,
        "What of the usage is beyond the quota and held by preemptible pods: others may have it.",
    ),
    "queue_held": (ROW, "Room that is held for pods others were evicted for."),
    "queue_quota_unmet": (
        ("queue",),
        "1 where pods wait within the quota and nobody can go for them, else 0.",
    ),
    "queue_claims": (("queue",), "Allocated claims that a queue itself is charged for."),
    "queue_claims_shared_out": (("queue",), "Of these, those that pods of other queues use, too."),
    "queue_foreign_claims": (("queue",), "Claims of other queues that pods of this one use."),
    "waiting_pods": (("queue",), "Pods that wait for devices, at the gate or refused."),
    "queue_rows_left_out": (
        (),
        "Queues and classes that are not told, since there are more than 10,000.",
    ),
}
"""Labels and meaning of each figure."""

Waiting = Callable[[], Mapping[QueueName, int]]


class QueueFigures:
    """What queues have, as families of figures."""

    def __init__(self, world: World, waiting: Waiting, monotonic: Callable[[], float]) -> None:
        """`waiting` tells how many pods of each queue wait."""
        self._world = world
        self._waiting = waiting
        self._monotonic = monotonic
        self._shares = ShareFigures(world)

    async def families(self) -> AsyncIterator[Metric]:
        """All of them, each complete; one after the other."""
        found = {name: _family(name) for name in MEANINGS}
        left_out = await self._rows(found)
        found["queue_rows_left_out"].add_metric((), left_out)
        for queue, count in (await self._foreign()).items():
            found["queue_foreign_claims"].add_metric((queue,), count)
        for queue, count in self._waiting().items():
            found["waiting_pods"].add_metric((queue,), count)
        for family in found.values():
            yield family
            await asyncio.sleep(0)

    async def _rows(self, found: Mapping[str, GaugeMetricFamily]) -> int:
        """Fill in what is told of queues; returns how many rows are left out."""
        rows = left_out = 0
        for number, queue in enumerate(list(self._world.facts.tree), start=1):
            keys = self._keys(queue)
            told = tuple(islice(keys, max(0, MOST_ROWS - rows)))
            rows, left_out = rows + len(told), left_out + len(keys) - len(told)
            if told or not keys:
                self._queue(found, queue, told)
            if number % IN_ONE_STEP == 0:
                await asyncio.sleep(0)
        return left_out

    def _keys(self, queue: Queue) -> list[ResourceKey]:
        usage = self._world.ledger.of(queue.name)
        return sorted({*queue.shares, *(key for key, _ in (*usage.usage, *usage.requested))})

    def _queue(
        self, found: Mapping[str, GaugeMetricFamily], queue: Queue, keys: tuple[ResourceKey, ...]
    ) -> None:
        name = queue.name
        usage, held = self._world.ledger.of(name), self._world.held(name)
        shares, spare = self._shares.of(name, self._monotonic()), reclaimable(queue, self._world)
        for key in keys:
            share, row = queue.shares.get(key), (name, key)
            found["queue_usage"].add_metric(row, usage.usage[key])
            found["queue_usage_non_preemptible"].add_metric(row, usage.non_preemptible[key])
            found["queue_requested"].add_metric(row, usage.requested[key])
            found["queue_quota"].add_metric(row, _number(share.quota) if share else 0)
            found["queue_limit"].add_metric(row, _number(share.limit) if share else float("inf"))
            found["queue_share"].add_metric(row, shares[key])
            found["queue_reclaimable"].add_metric(row, spare[key])
            found["queue_held"].add_metric(row, held[key])
        found["queue_quota_unmet"].add_metric((name,), name in self._world.unmet)
        found["queue_claims"].add_metric((name,), usage.owned)
        found["queue_claims_shared_out"].add_metric((name,), usage.shared_out)

    async def _foreign(self) -> Counter[QueueName]:
        facts, ledger = self._world.facts, self._world.ledger
        found: Counter[QueueName] = Counter({queue.name: 0 for queue in facts.tree})
        for number, claim in enumerate(list(facts.claims()), start=1):
            entry = ledger.claim(claim.uid)
            if entry is not None and entry.shared_out:
                users = {facts.queue_of(pod) for pod in facts.consumers(claim)}
                found.update(queue for queue in users - {entry.owner} if queue in found)
            if number % IN_ONE_STEP == 0:
                await asyncio.sleep(0)
        return found


def _family(name: str) -> GaugeMetricFamily:
    labels, meaning = MEANINGS[name]
    return GaugeMetricFamily(f"{PREFIX}{name}", meaning, labels=labels)


def _number(ceiling: Ceiling) -> float:
    return float("inf") if ceiling.most is None else ceiling.most
