"""Prometheus: what the plugin tells of itself in figures; `docs/metrics.md` is the table for users.

What queues are charged stands in their status. What nobody is charged for has no object that could
say so: it is told here, read from the ledger when somebody asks.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from prometheus_client import CollectorRegistry, ProcessCollector
from prometheus_client.exposition import CONTENT_TYPE_LATEST, generate_latest
from prometheus_client.metrics_core import GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from scheduler_plugin.objects.amounts import Charges

__all__ = ["CONTENT_TYPE_LATEST", "Figures"]

UNATTRIBUTED = "moorage_scheduler_plugin_unattributed"
_MEANING = "Uses of accounted devices that no queue is charged for."


class Figures:
    """The figures of one process."""

    def __init__(self, unattributed: Callable[[], Charges]) -> None:
        """`unattributed` tells what is in use now and charged to nobody."""
        self._registry = CollectorRegistry(auto_describe=False)
        self._registry.register(_Unattributed(unattributed))
        ProcessCollector(registry=self._registry)

    def page(self) -> bytes:
        """All figures, in Prometheus' text format."""
        return generate_latest(self._registry)


class _Unattributed(Collector):
    def __init__(self, read: Callable[[], Charges]) -> None:
        self._read = read

    def collect(self) -> Iterator[Metric]:
        found = GaugeMetricFamily(UNATTRIBUTED, _MEANING, labels=("device_class",))
        for key, amount in self._read():
            found.add_metric((key,), amount)
        yield found
