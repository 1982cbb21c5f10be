"""Prometheus: the driver's metrics; `docs/metrics.md` is the table for users.

Events are counted where they happen. Gauges are computed from the state when Prometheus asks, so
that they cannot differ from it, see `running`. The process has one registry.
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

from kube.reconciling.api import WORK_QUEUE_FIGURES

logger = logging.getLogger(__name__)

_NAMESPACE = "moorage_driver"
_REGISTRY = CollectorRegistry(auto_describe=False)
ProcessCollector(registry=_REGISTRY)

Read = Callable[[], Iterable[Metric]]


class Gauge:
    """A gauge of the current state, with labels."""

    def __init__(
        self, name: str, meaning: str, labels: tuple[str, ...] = (), namespace: str = _NAMESPACE
    ) -> None:
        self.name = f"{namespace}_{name}"
        self.meaning = meaning
        self.labels = labels

    def of(self, counts: Mapping[tuple[str, ...], float]) -> Metric:
        """The metric with these values by label."""
        family = GaugeMetricFamily(self.name, self.meaning, labels=self.labels)
        for labels, value in sorted(counts.items()):
            family.add_metric(labels, value)
        return family

    def single(self, value: float) -> tuple[Metric]:
        """The metric with one value, for a gauge without labels."""
        return (self.of({(): value}),)


_counter = partial(Counter, namespace=_NAMESPACE, registry=_REGISTRY)
_histogram = partial(Histogram, namespace=_NAMESPACE, registry=_REGISTRY)

RECONCILES = _counter(
    "passes_total",
    "Calls of a reconciler. work is its purpose (publishing: ResourceSlices), result is ok or "
    "error. A failed call is retried.",
    ("work", "result"),
)
RECONCILE_SECONDS = _histogram(
    "pass_duration_seconds",
    "Duration of such a call, failed ones included.",
    ("work",),
)
SLICE_WRITES = _counter(
    "slice_writes_total",
    "ResourceSlices written. operation is create, update or delete; result is ok or error.",
    ("operation", "result"),
)
CHANGES_HELD_BACK = _counter(
    "changes_held_back_total",
    "Changes of devices that were not published at once. why is flapping: a device appeared more "
    "than three times in 30 s, and counts as absent until it has been present for 5 s; or rate: a "
    "pool was written so often that the next write had to wait.",
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
    "Prepared claims that no pod used any more and that the kubelet did not unprepare.",
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
    "Messages of external discovery handlers that exceeded a limit. what is registration, or "
    "answer: then the handler's earlier answer stays in force.",
    ("what",),
)
PUBLISHED_SECONDS = _histogram(
    "discovery_to_published_duration_seconds",
    "From when the driver knew of a change of its node's devices until ResourceSlices had it.",
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
    "Devices that this node's handlers report. shared: whether other nodes may see them, too.",
    ("configuration", "shared"),
)
COLLISIONS = Gauge(
    "name_collisions",
    "Devices without an Instance, because another device has their name.",
    ("configuration",),
)
DENIED_PROPERTIES = Gauge(
    "denied_properties",
    "Properties of devices that no container gets: their names are denied as environment.",
    ("configuration",),
)
CLAIMS_PREPARED = Gauge(
    "claims_prepared",
    "Claims that are prepared on this node.",
)
DOUBTFUL_CLAIMS = Gauge(
    "doubtful_claims",
    "Claims whose records cannot be read completely: a newer driver wrote them (why is newer), or "
    "they are unreadable. The node prepares no new claim meanwhile.",
    ("why",),
)
SLOTS_HELD = Gauge(
    "slots_held",
    "Slots that this node holds through the device plugin.",
    ("configuration",),
)
LEADER = Gauge(
    "leader",
    "1 on the elected replica, else 0.",
)
BROKERS = Gauge(
    "brokers",
    "Broker Pods. running: whether they run.",
    ("configuration", "running"),
)
AKRI_BROKERS = Gauge(
    "broker_pod_count",
    "Broker Pods, under Akri's name.",
    ("configuration", "node"),
    namespace="akri",
)
AKRI_INSTANCES = Gauge(
    "instance_count",
    "Instances, under Akri's name. is_shared: whether several nodes may see the device.",
    ("configuration", "is_shared"),
    namespace="akri",
)
INSTANCES = Gauge(
    "instances",
    "Instances. seen: whether a node sees the device now.",
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
    """Count the block as `ok`, or as `error` if it raises; a cancelled block is not counted."""
    try:
        yield
    except Exception:
        counter.labels(*labels, "error").inc()
        raise
    counter.labels(*labels, "ok").inc()


class Snapshots(Collector):
    """Gauges that are read when Prometheus asks, while a block of `reading` runs."""

    def __init__(self) -> None:
        self._reads: list[Read] = []

    @contextmanager
    def reading(self, *reads: Read) -> Iterator[None]:
        """Add these gauges while the block runs."""
        self._reads.extend(reads)
        try:
            yield
        finally:
            for read in reads:
                self._reads.remove(read)

    def collect(self) -> Iterator[Metric]:
        """Yield all gauges; a gauge that fails is logged, and does not stop the others."""
        for read in self._reads:
            try:
                yield from tuple(read())
            except Exception:
                logger.exception("a metric cannot be read")


SNAPSHOTS = Snapshots()
_REGISTRY.register(SNAPSHOTS)


def page() -> bytes:
    """All metrics, with those of the reconcilers' queues, in Prometheus' text format."""
    return generate_latest(_REGISTRY) + generate_latest(WORK_QUEUE_FIGURES)
