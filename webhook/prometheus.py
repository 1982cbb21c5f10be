"""Prometheus metrics of reviews; `docs/metrics.md` lists them for users.

One registry for the process. The values of labels are bounded: only `MOST_RULES` fields are
distinguished, since users choose the names of some.
"""

from __future__ import annotations

import re
from time import perf_counter

from prometheus_client import CollectorRegistry, Counter, Histogram, ProcessCollector
from prometheus_client.exposition import CONTENT_TYPE_LATEST, generate_latest

from kube.reconciling.api import WORK_QUEUE_FIGURES
from webhook.reviews import Answer, Review

__all__ = ["CONTENT_TYPE_LATEST", "Answered", "page"]

_PREFIX = "moorage_webhook_"
_REGISTRY = CollectorRegistry(auto_describe=False)
ProcessCollector(registry=_REGISTRY)

MOST_RULES = 100
OTHER = "other"

_KINDS = frozenset(
    {"ResourceClaim", "ResourceClaimTemplate", "Pod", "Queue", "Configuration", "DeviceClass"}
)
_IN_BRACKETS = re.compile(r"\[[^]]*\]")

REVIEWS = Counter(
    f"{_PREFIX}reviews_total",
    "Reviews of the API server. path is validate, warn or mutate; kind is that of the object, or"
    " other; result is allowed, changed, refused, or failed where none could be given.",
    ("path", "kind", "result"),
    registry=_REGISTRY,
)
REFUSALS = Counter(
    f"{_PREFIX}refusals_total",
    "Problems for which objects were refused, by the field that each is about (rule) and kind.",
    ("kind", "rule"),
    registry=_REGISTRY,
)
REVIEW_SECONDS = Histogram(
    f"{_PREFIX}review_duration_seconds",
    "How long the API server waited for the answer to a review (path).",
    ("path",),
    registry=_REGISTRY,
    buckets=(0.0005, 0.001, 0.002, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0),
)

_rules: dict[str, str] = {}


class Answered:
    """One review: counts it, and measures the time inside of the context."""

    def __init__(self, path: str, review: Review) -> None:
        self._path = path
        self._kind = review.kind.kind if review.kind.kind in _KINDS else OTHER
        self._began = perf_counter()
        self._result = "failed"

    def __enter__(self) -> Answered:
        """Begin; the review counts as failed unless `by` is called."""
        return self

    def __exit__(self, *_: object) -> None:
        """Count the review."""
        REVIEW_SECONDS.labels(self._path).observe(perf_counter() - self._began)
        REVIEWS.labels(self._path, self._kind, self._result).inc()

    def by(self, answer: Answer) -> Answer:
        """Count the review by this answer, and return the answer."""
        response = answer.response
        self._result = "allowed" if response.allowed else "refused"
        if response.patch is not None:
            self._result = "changed"
        for cause in ((response.status or {}).get("details") or {}).get("causes") or ():
            REFUSALS.labels(self._kind, rule(str(cause["field"]))).inc()
        return answer


def rule(field: str) -> str:
    """A field as a label, without the indices and keys of its entries."""
    found = _IN_BRACKETS.sub("[]", field)
    if found not in _rules and len(_rules) < MOST_RULES:
        _rules[found] = found
    return _rules.get(found, OTHER)


def page() -> bytes:
    """All metrics, in Prometheus' text format."""
    return generate_latest(_REGISTRY) + generate_latest(WORK_QUEUE_FIGURES)
