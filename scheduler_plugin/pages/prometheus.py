"""Prometheus: what the plugin tells of itself in figures; `docs/metrics.md` is the table for users.

What happens is counted where it happens. What there is at a moment is read when somebody asks, so
that no figure can differ from what it is about.

There is a row for each queue and class that the queue lists, uses or asks for: as many as the
administrator's Queues make. Beyond `MOST_ROWS` the rest is left out, and it is told how many.
A large cluster is read in steps, so that kube-scheduler is answered in between.
"""

from __future__ import annotations

import asyncio
from collections import Counter as Counts
from collections.abc import Callable, Iterator, Mapping
from itertools import islice

from prometheus_client import CollectorRegistry, Counter, ProcessCollector
from prometheus_client.exposition import CONTENT_TYPE_LATEST, generate_latest
from prometheus_client.metrics_core import GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from kube.api import Event
from scheduler_plugin.accounting.figures.queue_status import reclaimable
from scheduler_plugin.accounting.figures.share_figures import ShareFigures
from scheduler_plugin.accounting.world_views import WorldView
from scheduler_plugin.objects.amounts import Ceiling, ResourceKey
from scheduler_plugin.objects.names import Queue, QueueName

__all__ = ["CONTENT_TYPE_LATEST", "Figures"]

MOST_ROWS = 10_000
IN_ONE_STEP = 200
"""Queues or claims that are looked at before others have their turn."""

PREFIX = "moorage_scheduler_plugin_"
ROW = ("queue", "device_class")

REGISTRY = CollectorRegistry(auto_describe=False)
ProcessCollector(registry=REGISTRY)

EVICTIONS = Counter(
    f"{PREFIX}evictions_total",
    "Pods that were evicted. cause is reclaim (a queue under its quota needed room), foreign"
    " (the owner of a claim left, or asked for it back) or gang (a PodGroup lost too many pods).",
    ("cause",),
    registry=REGISTRY,
)
MEANINGS: Mapping[str, tuple[tuple[str, ...], str]] = {
    "unattributed": (
        ("device_class",),
        "Uses of accounted devices that no queue is charged for.",
    ),
    "serving": ((), "1 where the kube-scheduler beside this process is answered, else 0."),
    "watch_failures": (
        ("kind",),
        "How often in a row a kind of objects could not be listed or watched.",
    ),
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
"""Labels and meaning of what is read when somebody asks."""

_CAUSES = {"Reclaimed": "reclaim", "ForeignPodEvicted": "foreign", "PodGroupGivenUp": "gang"}
"""By the reason of the Event that a pod gets."""


class Figures:
    """The figures of one process."""

    def __init__(
        self,
        world: WorldView,
        waiting: Callable[[], Mapping[QueueName, int]],
        why_not_ready: Callable[[], str],
        watch_failures: Callable[[], Mapping[str, int]],
        calls: CollectorRegistry,
    ) -> None:
        """What is told, beside what is counted here.

        Args:
            world: Of its queues all is told.
            waiting: How many pods of each queue wait.
            why_not_ready: Why kube-scheduler is not answered; "" where it is.
            watch_failures: How often in a row each kind could not be followed.
            calls: What is counted of kube-scheduler's calls.
        """
        self._world = world
        self._waiting = waiting
        self._why_not_ready = why_not_ready
        self._watch_failures = watch_failures
        self._calls = calls
        self._shares = ShareFigures(world)

    async def page(self) -> bytes:
        """All figures, in Prometheus' text format; others have their turn in between."""
        parts = [generate_latest(REGISTRY), generate_latest(self._calls)]
        found = {name: _family(name) for name in MEANINGS}
        self._process(found)
        await self._queues(found)
        for family in found.values():
            parts.append(generate_latest(_One(family)))
            await asyncio.sleep(0)
        return b"".join(parts)

    def _process(self, found: Mapping[str, GaugeMetricFamily]) -> None:
        for key, amount in self._world.ledger.unattributed():
            found["unattributed"].add_metric((key,), amount)
        found["serving"].add_metric((), not self._why_not_ready())
        for kind, failures in self._watch_failures().items():
            found["watch_failures"].add_metric((kind,), failures)

    async def _queues(self, found: Mapping[str, GaugeMetricFamily]) -> None:
        left_out = await self._rows(found)
        found["queue_rows_left_out"].add_metric((), left_out)
        for queue, count in (await self._foreign()).items():
            found["queue_foreign_claims"].add_metric((queue,), count)
        for queue, count in self._waiting().items():
            found["waiting_pods"].add_metric((queue,), count)

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
        shares = self._shares.of(name, asyncio.get_running_loop().time())
        spare = reclaimable(queue, self._world)
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

    async def _foreign(self) -> Counts[QueueName]:
        facts, ledger = self._world.facts, self._world.ledger
        found: Counts[QueueName] = Counts({queue.name: 0 for queue in facts.tree})
        for number, claim in enumerate(list(facts.claims()), start=1):
            entry = ledger.claim(claim.uid)
            if entry is not None and entry.shared_out:
                users = {facts.queue_of(pod) for pod in facts.consumers(claim)}
                found.update(queue for queue in users - {entry.owner} if queue in found)
            if number % IN_ONE_STEP == 0:
                await asyncio.sleep(0)
        return found


class _One(Collector):
    def __init__(self, family: Metric) -> None:
        self._family = family

    def collect(self) -> Iterator[Metric]:
        yield self._family


def _family(name: str) -> GaugeMetricFamily:
    labels, meaning = MEANINGS[name]
    return GaugeMetricFamily(f"{PREFIX}{name}", meaning, labels=labels)


def _number(ceiling: Ceiling) -> float:
    return float("inf") if ceiling.most is None else ceiling.most


def counting_evictions(record: Callable[[Event], None]) -> Callable[[Event], None]:
    """Hands Events on, and counts those by which pods hear of their evictions."""

    def take(event: Event) -> None:
        cause = _CAUSES.get(event.reason)
        if cause is not None and event.regarding.kind == "Pod":
            EVICTIONS.labels(cause).inc()
        record(event)

    return take
