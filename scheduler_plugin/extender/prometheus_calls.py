"""Prometheus metrics of the answers to kube-scheduler's calls.

The process has one registry for them. The values of labels are fixed: the verbs, and the reasons of
verdicts. Counting one call takes a few microseconds.
"""

from __future__ import annotations

from prometheus_client import CollectorRegistry, Counter, Histogram

from scheduler_plugin.extender.messages import Answer, NotAnswered, Passed
from scheduler_plugin.objects.names import Reason

REGISTRY = CollectorRegistry(auto_describe=False)

ADMITTED, NOT_ANSWERED = "Admitted", "NotAnswered"
_PREFIX = "moorage_scheduler_plugin_"
_BUCKETS = (0.0005, 0.001, 0.002, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 6.0)
"""Seconds, from the time of a Filter to the limit of a Bind: see `http_app.Limits`."""

VERDICTS = Counter(
    f"{_PREFIX}verdicts_total",
    "Answers to Filter and Preempt (verb). reason is Admitted, that of a refusal, or NotAnswered."
    " Until version 0.3 a ClaimNotFound counts as Gone, too, its former name.",
    ("verb", "reason"),
    registry=REGISTRY,
)
BINDS = Counter(
    f"{_PREFIX}binds_total",
    "Answers to Bind. result is bound or not_bound.",
    ("result",),
    registry=REGISTRY,
)
CALL_SECONDS = Histogram(
    f"{_PREFIX}call_duration_seconds",
    "How long kube-scheduler waited for the answer to a call. verb is filter, preempt or bind.",
    ("verb",),
    registry=REGISTRY,
    buckets=_BUCKETS,
)
WATCH_LAG_SECONDS = Histogram(
    f"{_PREFIX}watch_lag_seconds",
    "How long a Bind waited for the watch to bring what kube-scheduler had written before it.",
    registry=REGISTRY,
    buckets=_BUCKETS,
)

_SECONDS = {verb: CALL_SECONDS.labels(verb) for verb in ("filter", "preempt", "bind")}
_BINDS = {
    is_bound: BINDS.labels("bound" if is_bound else "not_bound") for is_bound in (True, False)
}
_VERDICTS: dict[tuple[str, str], Counter] = {}


def note_verdict(verb: str, answer: Answer) -> None:
    """Count an answer to Filter or Preempt."""
    if isinstance(answer, Passed):
        reason = ADMITTED
    else:
        reason = NOT_ANSWERED if isinstance(answer, NotAnswered) else str(answer.reason)
    _count(verb, reason)
    if reason == Reason.CLAIM_NOT_FOUND:
        _count(verb, str(Reason.GONE))


def _count(verb: str, reason: str) -> None:
    counter = _VERDICTS.get((verb, reason))
    if counter is None:
        counter = _VERDICTS[verb, reason] = VERDICTS.labels(verb, reason)
    counter.inc()


def note_bind(why_not: str) -> None:
    """Count an answer to Bind."""
    _BINDS[not why_not].inc()


def note_call(path: str, seconds: float) -> None:
    """Note the seconds that a call of this path took."""
    _SECONDS[path.removeprefix("/")].observe(seconds)
