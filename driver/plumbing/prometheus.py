"""Prometheus: what the driver tells of itself in figures; `docs/metrics.md` is the table for users.

Things that happen are counted where they happen. What there is at a moment is derived from it when
somebody asks, so that no figure can differ from what it is about, see `running`. One registry for
the process: what is counted is of the process, whoever counts it.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from functools import partial

from prometheus_client import CollectorRegistry, Counter, Histogram, ProcessCollector
from prometheus_client.exposition import generate_latest
from prometheus_client.metrics_core import GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from kube.api import WORK_QUEUE_FIGURES

logger = logging.getLogger(__name__)

_NAMESPACE = "moorage_driver"
_REGISTRY = CollectorRegistry(auto_describe=False)
ProcessCollector(registry=_REGISTRY)

Read = Callable[[], Iterable[Metric]]


class Gauge:
    """A figure of what there is, told apart by labels."""

    def __init__(self, name: str, meaning: str, labels: tuple[str, ...] = ()) -> None:
        self.name = f"{_NAMESPACE}_{name}"
        self.meaning = meaning
        self.labels = labels

    def of(self, counts: Mapping[tuple[str, ...], float]) -> Metric:
        """Its values by their labels."""
        family = GaugeMetricFamily(self.name, self.meaning, labels=self.labels)
        for labels, value in sorted(counts.items()):
            family.add_metric(labels, value)
        return family

    def single(self, value: float) -> tuple[Metric]:
        """Its value, where it has no labels."""
        return (self.of({(): value}),)


_counter = partial(Counter, namespace=_NAMESPACE, registry=_REGISTRY)
_histogram = partial(Histogram, namespace=_NAMESPACE, registry=_REGISTRY)

PASSES = _counter(
    "passes_total",
    "Rounds of deciding and writing. work is what a round brings about (publishing: "
    "ResourceSlices), result is ok or error. A round that failed is done again.",
    ("work", "result"),
)
PASS_SECONDS = _histogram(
    "pass_duration_seconds",
    "How long such a round took, failed ones included.",
    ("work",),
)
SLICE_WRITES = _counter(
    "slice_writes_total",
    "ResourceSlices written. operation is create, update or delete; result is ok or error.",
    ("operation", "result"),
)
CHANGES_HELD_BACK = _counter(
    "changes_held_back_total",
    "Changes of devices that were not published at once. why is flapping: a device came more than "
    "three times in half a minute, and counts as away until it has been there for 5 s; or rate: "
    "a pool was written so often that the next write had to wait.",
    ("why",),
)
CLAIM_REQUESTS = _counter(
    "claim_requests_total",
    "Claims that the kubelet asked to prepare or unprepare (operation); result is ok or error.",
    ("operation", "result"),
)
CLAIM_REQUEST_SECONDS = _histogram(
    "claim_request_duration_seconds",
    "How long the kubelet waited for the answer to such a call, which may name several claims.",
    ("operation",),
)
STALE_CLAIMS = _counter(
    "stale_claims_released_total",
    "Claims that were prepared, that no pod had any more, and that the kubelet did not unprepare.",
)
ALLOCATIONS = _counter(
    "allocations_total",
    "Calls of Allocate of the device plugins. result is granted, refused or error.",
    ("result",),
)
ALLOCATION_SECONDS = _histogram(
    "allocation_duration_seconds",
    "How long the kubelet waited for the answer to Allocate.",
)
HANDLERS_REFUSED = _counter(
    "handler_refusals_total",
    "What registered discovery handlers said and there was no room for. what is registration, or "
    "answer: then what the handler said before stays.",
    ("what",),
)
PUBLISHED_SECONDS = _histogram(
    "discovery_to_published_duration_seconds",
    "From when the driver knew of a change of its node's devices until ResourceSlices said so.",
)
SLOT_RELEASE_SECONDS = _histogram(
    "slot_release_duration_seconds",
    "From when a pod that asked for slots ended until slots of this node were free again.",
)
HANDLERS = Gauge(
    "discovery_handlers",
    "Discovery handlers. source is embedded or external; state is Waiting, Active or Offline.",
    ("handler", "source", "state"),
)
DEVICES = Gauge(
    "devices",
    "Devices that this node's handlers report. shared tells whether other nodes may see them, too.",
    ("configuration", "shared"),
)
COLLISIONS = Gauge(
    "name_collisions",
    "Devices that are no Instance, since another device has their name.",
    ("configuration",),
)
DENIED_PROPERTIES = Gauge(
    "denied_properties",
    "Properties of devices that no container gets, since their names are denied as environment.",
    ("configuration",),
)
CLAIMS_PREPARED = Gauge(
    "claims_prepared",
    "Claims that are prepared on this node.",
)
DOUBTFUL_CLAIMS = Gauge(
    "doubtful_claims",
    "Claims whose records cannot be read as a whole: a newer driver wrote them (why is newer), or "
    "they are unreadable. Nothing new is prepared on the node meanwhile.",
    ("why",),
)
SLOTS_HELD = Gauge(
    "slots_held",
    "Slots that this node holds through the device plugin.",
    ("configuration",),
)
LEADER = Gauge(
    "leader",
    "1 on the replica that is the elected one, else 0.",
)
INSTANCES = Gauge(
    "instances",
    "Instances. seen tells whether a node sees the device now.",
    ("configuration", "seen"),
)
SLOTS = Gauge(
    "slots",
    "Slots of all Instances.",
    ("configuration",),
)
SLOTS_USED = Gauge(
    "slots_used",
    "Slots of all Instances that are held through device plugins.",
    ("configuration",),
)


@contextmanager
def counted(counter: Counter, *labels: str) -> Iterator[None]:
    """Count the block as `ok`, or as `error` where it raises; a cancelled one is neither."""
    try:
        yield
    except Exception:
        counter.labels(*labels, "error").inc()
        raise
    counter.labels(*labels, "ok").inc()


class Snapshots(Collector):
    """Figures that are read when somebody asks, as long as the block of `reading` lasts."""

    def __init__(self) -> None:
        self._reads: list[Read] = []

    @contextmanager
    def reading(self, *reads: Read) -> Iterator[None]:
        """Tell these figures, too, while the block lasts."""
        self._reads.extend(reads)
        try:
            yield
        finally:
            for read in reads:
                self._reads.remove(read)

    def collect(self) -> Iterator[Metric]:
        """One that cannot be read does not keep the others from being told."""
        for read in self._reads:
            try:
                yield from tuple(read())
            except Exception:
                logger.exception("a figure cannot be read")


SNAPSHOTS = Snapshots()
_REGISTRY.register(SNAPSHOTS)


def page() -> bytes:
    """All figures, those of the reconcilers' queues included, in Prometheus' text format."""
    return generate_latest(_REGISTRY) + generate_latest(WORK_QUEUE_FIGURES)
