"""The plugin's Prometheus metrics; `docs/metrics.md` is the table for users.

Counters count where things happen. Gauges are read at each scrape, so that none can be outdated.

There is a row for each queue and entry or class that the queue lists, uses or requests: their
number depends on the administrator's Queues. The label `device_class` is the name of the entry;
amounts of a measure are in its unit. Rows beyond `MOST_ROWS` are left out, and a metric has their
number.
A large cluster is read and written in steps, so that kube-scheduler is answered in between;
`http_figures` makes one page for all clients.
"""

from __future__ import annotations

import asyncio
from collections import Counter as Counts
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import chain, islice

from prometheus_client import CollectorRegistry, Counter, ProcessCollector
from prometheus_client.exposition import generate_latest
from prometheus_client.metrics_core import GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from kube.events.api import Event
from scheduler_plugin.accounting.figures.queue_status import reclaimable
from scheduler_plugin.accounting.figures.share_figures import ShareFigures
from scheduler_plugin.accounting.world_views import WorldView
from scheduler_plugin.objects.amounts import Charges, ResourceKey
from scheduler_plugin.objects.measures import amount_number, is_class
from scheduler_plugin.objects.names import Queue, QueueName, Share

MOST_ROWS = 10_000
_UNLISTED = Share()
IN_ONE_STEP = 25
"""How many queues, rows, claims and users one step reads and writes before other tasks run: one or
two milliseconds."""

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
    "serving": ((), "1 if the kube-scheduler beside this process is served, else 0."),
    "watch_failures": (
        ("kind", "cause"),
        "List or watch failures of a kind of objects in a row. cause is unavailable, server-fault,"
        " credentials, missing-right or another refusal; it is empty without a failure.",
    ),
    "queue_usage": (ROW, "Usage that a queue and the queues below it are charged for."),
    "queue_usage_non_preemptible": (ROW, "The part of the usage that non-preemptible pods have."),
    "queue_requested": (ROW, "Usage plus the requests of waiting pods."),
    "queue_quota": (ROW, "The queue's quota; +Inf for none."),
    "queue_limit": (ROW, "The queue's limit; +Inf for none."),
    "queue_share": (
        ROW,
        "The queue's fair share if all devices were given again; a few seconds old.",
    ),
    "queue_reclaimable": (
        ROW,
        "The usage above the quota that preemptible pods have: other queues may reclaim it.",
    ),
    "queue_held": (ROW, "Room that is held for pods for which other pods were evicted."),
    "queue_quota_unmet": (
        ("queue",),
        "1 if pods wait within the quota and no pod can be evicted for them, else 0.",
    ),
    "queue_claims": (("queue",), "Allocated claims that a queue itself is charged for."),
    "queue_claims_shared_out": (
        ("queue",),
        "The claims of queue_claims that pods of other queues use, too.",
    ),
    "queue_foreign_claims": (("queue",), "Claims of other queues that pods of this one use."),
    "waiting_pods": (("queue",), "Pods that wait for devices: gated or refused."),
    "queue_rows_left_out": (
        (),
        "Queues and classes beyond 10,000, which have no row.",
    ),
}
"""Labels and meaning of the metrics that are read at each scrape."""

_CAUSES = {"Reclaimed": "reclaim", "ForeignPodEvicted": "foreign", "PodGroupGivenUp": "gang"}
"""The cause of an eviction by the reason of the pod's Event."""


class Figures:
    """The metrics of one process."""

    def __init__(
        self,
        world: WorldView,
        waiting: Callable[[], Mapping[QueueName, int]],
        why_not_ready: Callable[[], str],
        watch_failures: Callable[[], Mapping[str, tuple[int, str]]],
        counted: Sequence[CollectorRegistry],
    ) -> None:
        """The sources of the metrics, beside the counters of this module.

        Args:
            world: The queues and their charges.
            waiting: How many pods of each queue wait.
            why_not_ready: Why kube-scheduler is not served; "" if it is.
            watch_failures: How often in a row each kind could not be followed, and why.
            counted: Registries of other modules, such as that of kube-scheduler's calls.
        """
        self._world = world
        self._waiting = waiting
        self._why_not_ready = why_not_ready
        self._watch_failures = watch_failures
        self._counted = REGISTRY, *counted
        self._shares = ShareFigures(world)

    async def page(self) -> bytes:
        """All metrics in Prometheus' text format; other tasks run in between."""
        page = _Page()
        self._process(page)
        await self._queues(page)
        return b"".join((*map(generate_latest, self._counted), *page.parts()))

    def _process(self, page: _Page) -> None:
        for key, amount in _each_name_once(self._world.ledger.unattributed()):
            page.add("unattributed", (str(key),), amount_number(key, amount))
        page.add("serving", (), not self._why_not_ready())
        for kind, (failures, cause) in self._watch_failures().items():
            page.add("watch_failures", (kind, cause), failures)

    async def _queues(self, page: _Page) -> None:
        left_out = await self._rows(page)
        page.add("queue_rows_left_out", (), left_out)
        for queue, count in (await self._foreign(page)).items():
            page.add("queue_foreign_claims", (queue,), count)
            await page.advance()
        for queue, count in list(self._waiting().items()):
            page.add("waiting_pods", (queue,), count)
            await page.advance()

    async def _rows(self, page: _Page) -> int:
        """Add the rows of all queues; returns how many rows are left out."""
        rows = left_out = 0
        for queue in list(self._world.facts.tree):
            keys = self._keys(queue)
            listed = tuple(islice(keys, max(0, MOST_ROWS - rows)))
            rows, left_out = rows + len(listed), left_out + len(keys) - len(listed)
            if listed or not keys:
                await self._queue(page, queue, listed)
            await page.advance()
        return left_out

    def _keys(self, queue: Queue) -> list[ResourceKey]:
        usage = self._world.ledger.of(queue.name)
        known = {*queue.shares, *(key for key, _ in (*usage.usage, *usage.requested))}
        return self._world.facts.tree.shown_keys(queue.name, known)

    async def _queue(self, page: _Page, queue: Queue, keys: tuple[ResourceKey, ...]) -> None:
        name = queue.name
        usage, held = self._world.ledger.of(name), self._world.held(name)
        shares = self._shares.of(name, asyncio.get_running_loop().time())
        above_quota = reclaimable(queue, self._world)
        page.add("queue_quota_unmet", (name,), name in self._world.unmet)
        page.add("queue_claims", (name,), usage.owned)
        page.add("queue_claims_shared_out", (name,), usage.shared_out)
        for key in keys:
            share = queue.shares.get(key, _UNLISTED)
            amounts = {
                "queue_usage": usage.usage[key],
                "queue_usage_non_preemptible": usage.non_preemptible[key],
                "queue_requested": usage.requested[key],
                "queue_quota": share.quota.most,
                "queue_limit": share.limit.most,
                "queue_share": shares[key],
                "queue_reclaimable": above_quota[key],
                "queue_held": held[key],
            }
            for metric, amount in amounts.items():
                page.add(metric, (name, str(key)), _number(key, amount))
            await page.advance()

    async def _foreign(self, page: _Page) -> Counts[QueueName]:
        facts, ledger = self._world.facts, self._world.ledger
        found: Counts[QueueName] = Counts({queue.name: 0 for queue in facts.tree})
        for claim in list(facts.claims()):
            entry = ledger.claim(claim.uid)
            if entry is not None and entry.shared_out:
                pods = list(facts.consumers(claim))
                users = {facts.queue_of(pod) for pod in pods}
                found.update(queue for queue in users - {entry.owner} if queue in found)
                await page.advance(len(pods))
            await page.advance()
        return found


class _Page:
    """Families of samples, which become text while they are added.

    80,000 samples as objects would be 50 MB, and the garbage collector would traverse them.
    """

    def __init__(self) -> None:
        self._found = {name: _family(name) for name in MEANINGS}
        self._written: dict[str, list[bytes]] = {name: [] for name in MEANINGS}
        self._done = 0

    def add(self, name: str, labels: Sequence[str], value: float) -> None:
        self._found[name].add_metric(labels, value)

    async def advance(self, amount: int = 1) -> None:
        """Count work; after `IN_ONE_STEP` write the samples, and let other tasks run."""
        self._done += amount
        if self._done >= IN_ONE_STEP:
            self._done = 0
            self._write(name for name, family in self._found.items() if family.samples)
            await asyncio.sleep(0)

    def parts(self) -> Iterator[bytes]:
        """The text of all families, one after the other."""
        self._write(MEANINGS)
        return chain.from_iterable(self._written.values())

    def _write(self, names: Iterable[str]) -> None:
        for name in names:
            text, parts = generate_latest(_One(self._found[name])), self._written[name]
            # The two lines that describe a family are written once.
            parts.append(text.split(b"\n", 2)[2] if parts else text)
            self._found[name].samples.clear()


class _One(Collector):
    def __init__(self, family: Metric) -> None:
        self._family = family

    def collect(self) -> Iterator[Metric]:
        yield self._family


def _family(name: str) -> GaugeMetricFamily:
    labels, meaning = MEANINGS[name]
    return GaugeMetricFamily(f"{PREFIX}{name}", meaning, labels=labels)


def _number(key: ResourceKey, amount: int | None) -> float:
    return float("inf") if amount is None else amount_number(key, amount)


def _each_name_once(found: Charges) -> Iterator[tuple[ResourceKey, int]]:
    """The amounts without those of names that count different things in several trees."""
    names = Counts(str(key) for key, _ in found)
    return ((key, amount) for key, amount in found if names[str(key)] == 1 or is_class(key))


def counting_evictions(record: Callable[[Event], None]) -> Callable[[Event], None]:
    """Passes Events on, and counts those that report evictions."""

    def take(event: Event) -> None:
        cause = _CAUSES.get(event.reason)
        if cause is not None and event.regarding.kind == "Pod":
            EVICTIONS.labels(cause).inc()
        record(event)

    return take
