"""Prometheus: what the plugin tells of itself in figures; `docs/metrics.md` is the table for users.

What happens is counted where it happens. What there is at a moment is read when somebody asks, so
that no figure can differ from what it is about.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence

from prometheus_client import CollectorRegistry, Counter, ProcessCollector
from prometheus_client.exposition import CONTENT_TYPE_LATEST, generate_latest
from prometheus_client.metrics_core import GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from kube.api import Event
from scheduler_plugin.objects.amounts import Charges
from scheduler_plugin.pages.prometheus_queues import PREFIX

__all__ = ["CONTENT_TYPE_LATEST", "Figures"]

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
}
"""Labels and meaning of what is read when somebody asks, beside what queues have."""

_CAUSES = {"Reclaimed": "reclaim", "ForeignPodEvicted": "foreign", "PodGroupGivenUp": "gang"}
"""By the reason of the Event that a pod gets."""

Families = Callable[[], AsyncIterator[Metric]]


class Figures:
    """The figures of one process."""

    def __init__(
        self,
        unattributed: Callable[[], Charges],
        why_not_ready: Callable[[], str] = str,
        watch_failures: Callable[[], Mapping[str, int]] = dict,
        *,
        counted: Sequence[CollectorRegistry] = (),
        families: Sequence[Families] = (),
    ) -> None:
        """What is told, beside what is counted here.

        Args:
            unattributed: What is in use now and charged to nobody.
            why_not_ready: Why kube-scheduler is not answered; "" where it is.
            watch_failures: How often in a row each kind could not be followed.
            counted: What others count.
            families: What takes long to read, in steps.
        """
        self._unattributed = unattributed
        self._why_not_ready = why_not_ready
        self._watch_failures = watch_failures
        self._counted = (REGISTRY, *counted)
        self._families = families

    async def page(self) -> bytes:
        """All figures, in Prometheus' text format; others have their turn in between."""
        parts = [generate_latest(registry) for registry in self._counted]
        parts += [_text(family) for family in self._now()]
        for families in self._families:
            async for family in families():
                parts.append(_text(family))
                await asyncio.sleep(0)
        return b"".join(parts)

    def _now(self) -> Iterator[Metric]:
        told = {name: _family(name) for name in MEANINGS}
        for key, amount in self._unattributed():
            told["unattributed"].add_metric((key,), amount)
        told["serving"].add_metric((), not self._why_not_ready())
        for kind, failures in self._watch_failures().items():
            told["watch_failures"].add_metric((kind,), failures)
        yield from told.values()


def _family(name: str) -> GaugeMetricFamily:
    labels, meaning = MEANINGS[name]
    return GaugeMetricFamily(f"{PREFIX}{name}", meaning, labels=labels)


class _One(Collector):
    def __init__(self, family: Metric) -> None:
        self._family = family

    def collect(self) -> Iterator[Metric]:
        yield self._family


def _text(family: Metric) -> bytes:
    registry = CollectorRegistry(auto_describe=False)
    registry.register(_One(family))
    return generate_latest(registry)


def counting_evictions(record: Callable[[Event], None]) -> Callable[[Event], None]:
    """Hands Events on, and counts those by which pods hear of their evictions."""

    def take(event: Event) -> None:
        cause = _CAUSES.get(event.reason)
        if cause is not None and event.regarding.kind == "Pod":
            EVICTIONS.labels(cause).inc()
        record(event)

    return take
