"""Prometheus: what the plugin tells of itself in figures; `docs/metrics.md` is the table for users.

What happens is counted where it happens. What there is at a moment is read when somebody asks, so
that no figure can differ from what it is about.

There is a row for each queue and class that the queue lists, uses or asks for: as many as the
administrator's Queues make. Beyond `MOST_ROWS` the rest is left out, and it is told how many.
A large cluster is read and written down in steps, so that kube-scheduler is answered in between;
`http_figures` sees to it that this is done once for all who ask.
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

from kube.api import Event
from scheduler_plugin.accounting.figures.queue_status import reclaimable
from scheduler_plugin.accounting.figures.share_figures import ShareFigures
from scheduler_plugin.accounting.world_views import WorldView
from scheduler_plugin.objects.amounts import Ceiling, ResourceKey
from scheduler_plugin.objects.names import Queue, QueueName

MOST_ROWS = 10_000
IN_ONE_STEP = 25
"""Queues, rows, claims and their users that are looked at and written before others have their
turn: a millisecond or two."""

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
        ("kind", "cause"),
        "How often in a row a kind of objects could not be listed or watched. cause is unavailable,"
        " server-fault, credentials, missing-right or another refusal; empty while all is well.",
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
        watch_failures: Callable[[], Mapping[str, tuple[int, str]]],
        counted: Sequence[CollectorRegistry],
    ) -> None:
        """What is told, beside what is counted here.

        Args:
            world: Of its queues all is told.
            waiting: How many pods of each queue wait.
            why_not_ready: Why kube-scheduler is not answered; "" where it is.
            watch_failures: How often in a row each kind could not be followed, and why.
            counted: What is counted elsewhere, of kube-scheduler's calls for example.
        """
        self._world = world
        self._waiting = waiting
        self._why_not_ready = why_not_ready
        self._watch_failures = watch_failures
        self._counted = REGISTRY, *counted
        self._shares = ShareFigures(world)

    async def page(self) -> bytes:
        """All figures, in Prometheus' text format; others have their turn in between."""
        page = _Page()
        self._process(page)
        await self._queues(page)
        return b"".join((*map(generate_latest, self._counted), *page.parts()))

    def _process(self, page: _Page) -> None:
        for key, amount in self._world.ledger.unattributed():
            page.add("unattributed", (key,), amount)
        page.add("serving", (), not self._why_not_ready())
        for kind, (failures, cause) in self._watch_failures().items():
            page.add("watch_failures", (kind, cause), failures)

    async def _queues(self, page: _Page) -> None:
        left_out = await self._rows(page)
        page.add("queue_rows_left_out", (), left_out)
        for queue, count in (await self._foreign(page)).items():
            page.add("queue_foreign_claims", (queue,), count)
            await page.went_on()
        for queue, count in list(self._waiting().items()):
            page.add("waiting_pods", (queue,), count)
            await page.went_on()

    async def _rows(self, page: _Page) -> int:
        """Tell of queues; returns how many rows are left out."""
        rows = left_out = 0
        for queue in list(self._world.facts.tree):
            keys = self._keys(queue)
            told = tuple(islice(keys, max(0, MOST_ROWS - rows)))
            rows, left_out = rows + len(told), left_out + len(keys) - len(told)
            if told or not keys:
                await self._queue(page, queue, told)
            await page.went_on()
        return left_out

    def _keys(self, queue: Queue) -> list[ResourceKey]:
        usage = self._world.ledger.of(queue.name)
        return sorted({*queue.shares, *(key for key, _ in (*usage.usage, *usage.requested))})

    async def _queue(self, page: _Page, queue: Queue, keys: tuple[ResourceKey, ...]) -> None:
        name = queue.name
        usage, held = self._world.ledger.of(name), self._world.held(name)
        shares = self._shares.of(name, asyncio.get_running_loop().time())
        spare = reclaimable(queue, self._world)
        page.add("queue_quota_unmet", (name,), name in self._world.unmet)
        page.add("queue_claims", (name,), usage.owned)
        page.add("queue_claims_shared_out", (name,), usage.shared_out)
        for key in keys:
            share, row = queue.shares.get(key), (name, key)
            page.add("queue_usage", row, usage.usage[key])
            page.add("queue_usage_non_preemptible", row, usage.non_preemptible[key])
            page.add("queue_requested", row, usage.requested[key])
            page.add("queue_quota", row, _number(share.quota) if share else 0)
            page.add("queue_limit", row, _number(share.limit) if share else float("inf"))
            page.add("queue_share", row, shares[key])
            page.add("queue_reclaimable", row, spare[key])
            page.add("queue_held", row, held[key])
            await page.went_on()

    async def _foreign(self, page: _Page) -> Counts[QueueName]:
        facts, ledger = self._world.facts, self._world.ledger
        found: Counts[QueueName] = Counts({queue.name: 0 for queue in facts.tree})
        for claim in list(facts.claims()):
            entry = ledger.claim(claim.uid)
            if entry is not None and entry.shared_out:
                pods = list(facts.consumers(claim))
                users = {facts.queue_of(pod) for pod in pods}
                found.update(queue for queue in users - {entry.owner} if queue in found)
                await page.went_on(len(pods))
            await page.went_on()
        return found


class _Page:
    """Families of samples, which are written down while they are found.

    80,000 samples as objects would be 50 MB, and the garbage collector would look through them.
    """

    def __init__(self) -> None:
        self._found = {name: _family(name) for name in MEANINGS}
        self._written: dict[str, list[bytes]] = {name: [] for name in MEANINGS}
        self._done = 0

    def add(self, name: str, labels: Sequence[str], value: float) -> None:
        self._found[name].add_metric(labels, value)

    async def went_on(self, amount: int = 1) -> None:
        """So much was done; now and then what was found is written, and others have their turn."""
        self._done += amount
        if self._done >= IN_ONE_STEP:
            self._done = 0
            self._write(name for name, family in self._found.items() if family.samples)
            await asyncio.sleep(0)

    def parts(self) -> Iterator[bytes]:
        """All of it, one family after the other."""
        self._write(MEANINGS)
        return chain.from_iterable(self._written.values())

    def _write(self, names: Iterable[str]) -> None:
        for name in names:
            text, parts = generate_latest(_One(self._found[name])), self._written[name]
            # What a family is, in two lines, is said once.
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
