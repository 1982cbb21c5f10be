"""Prometheus metrics of work queues, as client-go has them, by the reconciler's name."""

from __future__ import annotations

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram

REGISTRY = CollectorRegistry(auto_describe=False)

_BUCKETS = (0.001, 0.005, 0.025, 0.1, 0.5, 2.5, 10.0, 60.0)
_NAME = ("name",)

DEPTH = Gauge("workqueue_depth", "Keys that are ready to be processed.", _NAME, registry=REGISTRY)
RESULTS = Counter(
    "workqueue_results_total",
    "How often a key was processed. result is done, after or failed; fenced counts attempts"
    " while writes were not allowed.",
    ("name", "result"),
    registry=REGISTRY,
)
WORK_SECONDS = Histogram(
    "workqueue_work_duration_seconds",
    "Seconds to process a key once.",
    _NAME,
    registry=REGISTRY,
    buckets=_BUCKETS,
)
