"""Prometheus: counts what happens, and says it together with what there is.

One registry for the process: what is counted is of the process, whoever counts it.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from time import perf_counter

from prometheus_client import CollectorRegistry, Counter, Histogram, ProcessCollector
from prometheus_client.exposition import CONTENT_TYPE_LATEST, generate_latest
from prometheus_client.metrics_core import GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from driver.plumbing.metrics import FAMILIES, Family, Kind, Sample

__all__ = [
    "CONTENT_TYPE_LATEST",
    "SNAPSHOTS",
    "Read",
    "Snapshots",
    "count",
    "counted",
    "page",
    "timed",
]

logger = logging.getLogger(__name__)

Read = Callable[[], Iterable[Sample]]

_REGISTRY = CollectorRegistry(auto_describe=False)
_COUNTERS = {
    family: Counter(family.name, family.meaning, family.labels, registry=_REGISTRY)
    for family in FAMILIES
    if family.kind is Kind.COUNTER
}
_HISTOGRAMS = {
    family: Histogram(family.name, family.meaning, family.labels, registry=_REGISTRY)
    for family in FAMILIES
    if family.kind is Kind.HISTOGRAM
}
ProcessCollector(registry=_REGISTRY)


def count(family: Family, *labels: str, by: int = 1) -> None:
    """It has happened."""
    counter = _COUNTERS[family]
    (counter.labels(*labels) if labels else counter).inc(by)


@contextmanager
def timed(family: Family, *labels: str) -> Iterator[None]:
    """Measure how long the block takes, also where it fails."""
    histogram = _HISTOGRAMS[family]
    began = perf_counter()
    try:
        yield
    finally:
        (histogram.labels(*labels) if labels else histogram).observe(perf_counter() - began)


@contextmanager
def counted(family: Family, *labels: str) -> Iterator[None]:
    """Count the block as `ok`, or as `error` where it raises; a cancelled one is neither."""
    try:
        yield
    except Exception:
        count(family, *labels, "error")
        raise
    count(family, *labels, "ok")


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
        found: dict[Family, GaugeMetricFamily] = {}
        for read in self._reads:
            try:
                samples = tuple(read())
            except Exception:
                logger.exception("a figure cannot be read")
                continue
            for sample in samples:
                _gauge(found, sample.family).add_metric(sample.labels, sample.value)
        yield from found.values()


def _gauge(found: dict[Family, GaugeMetricFamily], family: Family) -> GaugeMetricFamily:
    if family not in found:
        found[family] = GaugeMetricFamily(family.name, family.meaning, labels=family.labels)
    return found[family]


SNAPSHOTS = Snapshots()
_REGISTRY.register(SNAPSHOTS)


def page() -> bytes:
    """All figures, in Prometheus' text format."""
    return generate_latest(_REGISTRY)
