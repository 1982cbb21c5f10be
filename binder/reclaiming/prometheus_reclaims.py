"""Prometheus: how often evictions for a queue were put off by `evictionsPerMinute`."""

from __future__ import annotations

from prometheus_client import CollectorRegistry, Counter

REGISTRY = CollectorRegistry(auto_describe=False)

PUT_OFF = Counter(
    "moorage_scheduler_plugin_evictions_put_off_total",
    "How often a queue below its quota had to wait since as many pods were evicted for it within a"
    " minute as accounting.evictionsPerMinute allows.",
    ("queue",),
    registry=REGISTRY,
)
