"""Traces as a collector gets them, by the official protocol."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from time import monotonic

import pytest
from opentelemetry.proto.trace.v1.trace_pb2 import Status

from kube.processes import opentelemetry
from kube.processes.api import note_span, now_ns, trace_to
from tests.collector import Collector

POD = "6c6f1a52-8f0e-4f3c-9d6b-0a3f3c1f2b7e"
OTHER = "0b0b1a52-8f0e-4f3c-9d6b-0a3f3c1f2b7e"

ENDING = """
import sys
from kube.processes.api import note_span, now_ns, run_process, trace_to

async def work():
    trace_to(sys.argv[1], "moorage-driver")
    note_span("Bind", now_ns(), ("6c6f1a52-8f0e-4f3c-9d6b-0a3f3c1f2b7e",))

run_process(work())
"""

BARE = """
import sys
sys.modules["opentelemetry.sdk"] = None
from kube.processes.api import log_to_stderr, run_process, trace_to

async def work():
    trace_to("http://127.0.0.1:1", "moorage-driver")

log_to_stderr("INFO")
run_process(work())
"""


@pytest.fixture
def collector() -> Iterator[Collector]:
    with Collector.listening() as collector:
        trace_to(collector.endpoint, "moorage-driver")
        yield collector
        opentelemetry.PROVIDERS.pop().shutdown()


def test_what_is_done_for_a_pod_is_in_the_trace_that_its_uid_names(collector: Collector) -> None:
    began = now_ns()
    note_span("Bind", began, (POD, OTHER, "no-uuid"), claim_uid="c")
    note_span("Filter", began, (POD,), failure="OverLimit: no")
    opentelemetry.flush_spans()

    found = collector.spans
    assert [(s.name, s.trace_id.hex()) for s in found] == [
        ("Bind", POD.replace("-", "")),
        ("Bind", OTHER.replace("-", "")),
        ("Filter", POD.replace("-", "")),
    ]
    assert {s.span_id for s in found} != {found[0].span_id}
    assert found[0].start_time_unix_nano == began < found[0].end_time_unix_nano
    told = {a.key: a.value.string_value for a in found[0].attributes}
    assert told == {"k8s.pod.uid": POD, "claim.uid": "c"}
    failed = (Status.STATUS_CODE_ERROR, "OverLimit: no")
    assert (found[2].status.code, found[2].status.message) == failed
    assert collector.services == {"moorage-driver"}


def test_nothing_is_done_where_nobody_asked_for_traces() -> None:
    note_span("Bind", now_ns(), (POD,))
    opentelemetry.flush_spans()

    assert not opentelemetry.TRACE_IDS


def test_what_is_not_sent_yet_is_sent_when_the_process_ends() -> None:
    with Collector.listening() as collector:
        ended(ENDING, collector.endpoint)

        assert [span.name for span in collector.spans] == ["Bind"]


def test_a_collector_that_is_not_there_does_not_keep_the_process_from_ending() -> None:
    began = monotonic()
    assert ended(ENDING, "http://127.0.0.1:1").returncode == 0

    assert monotonic() - began < 10


def test_whoever_lacks_the_packages_is_told_which() -> None:
    done = ended(BARE)

    assert done.returncode == 1
    assert "Traces need the packages of moorage[tracing]" in done.stderr
    assert "Traceback" not in done.stderr


def ended(*arguments: str) -> subprocess.CompletedProcess[str]:
    argv = [sys.executable, "-c", *arguments]
    return subprocess.run(argv, capture_output=True, text=True, timeout=30, check=False)
