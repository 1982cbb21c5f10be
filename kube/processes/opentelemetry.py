"""Traces: one trace for each pod, across all processes; its id is the pod's UID.

So processes need not pass trace ids to each other, and the pod's UID finds the trace. The packages
are the extra `tracing`; they are imported only if an endpoint is set.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Iterable
from typing import TYPE_CHECKING
from uuid import UUID

if TYPE_CHECKING:
    from opentelemetry.sdk.trace import TracerProvider

EXPORT_SECONDS = 2.0
FLUSH_SECONDS = 1.0
"""Time to send the remaining spans when the process ends."""

TRACE_IDS: list[int] = []
"""The trace id of the next span; the SDK's id generator reads it here."""

PROVIDERS: list[TracerProvider] = []


class TracingError(Exception):
    """Raised when an endpoint is set and traces cannot be sent; says why."""


def trace_to(endpoint: str, service: str) -> None:
    """Send spans from now on.

    Args:
        endpoint: OTLP over gRPC, such as `http://collector:4317`; "" for none. Certificates and
            headers are set by the variables `OTEL_EXPORTER_OTLP_...`.
        service: The service name of the spans.

    Raises:
        TracingError: The packages are not installed.
    """
    if not endpoint:
        return
    try:
        from opentelemetry.exporter.otlp.proto.grpc.trace_exporter import OTLPSpanExporter
        from opentelemetry.sdk.resources import Resource
        from opentelemetry.sdk.trace import TracerProvider
        from opentelemetry.sdk.trace.export import BatchSpanProcessor
        from opentelemetry.sdk.trace.id_generator import RandomIdGenerator
    except ImportError as error:
        raise TracingError(f"Traces need the packages of moorage[tracing]: {error}.") from None

    class PodIds(RandomIdGenerator):
        def generate_trace_id(self) -> int:
            return TRACE_IDS.pop()

        def is_trace_id_random(self) -> bool:
            return False

    provider = TracerProvider(
        resource=Resource.create({"service.name": service}), id_generator=PodIds()
    )
    exporter = OTLPSpanExporter(endpoint=endpoint, timeout=EXPORT_SECONDS)
    provider.add_span_processor(BatchSpanProcessor(exporter))
    PROVIDERS.append(provider)


def now_ns() -> int:
    """The current time, for the start of a span."""
    return time.time_ns()


def note_span(
    name: str, began_ns: int, pods: Iterable[str], *, failure: str = "", **attributes: str
) -> None:
    """Record a span that ends now, in the trace of each of these pods.

    Args:
        name: The operation.
        began_ns: See `now_ns`.
        pods: UIDs of pods; one that is not a UUID gets no span.
        failure: Why the operation failed; "" if it succeeded.
        attributes: Attributes of the span; underscores in names are sent as points.
    """
    if not PROVIDERS:
        return
    for pod in pods:
        if trace := _trace_id(pod):
            found = {"k8s.pod.uid": pod}
            found |= {key.replace("_", "."): value for key, value in attributes.items()}
            _send_span(trace, name, began_ns, found, failure)


def _trace_id(pod: str) -> int:
    try:
        return UUID(pod).int
    except ValueError:
        return 0


def _send_span(
    trace: int, name: str, began_ns: int, attributes: dict[str, str], failure: str
) -> None:
    from opentelemetry.context import Context
    from opentelemetry.trace import StatusCode

    TRACE_IDS.append(trace)
    tracer = PROVIDERS[0].get_tracer("moorage")
    span = tracer.start_span(name, Context(), attributes=attributes, start_time=began_ns)
    if failure:
        span.set_status(StatusCode.ERROR, failure)
    span.end()


def flush_spans() -> None:
    """Send the remaining spans, within `FLUSH_SECONDS` for each provider."""
    for provider in PROVIDERS:
        sender = threading.Thread(target=provider.force_flush, daemon=True)
        sender.start()
        sender.join(FLUSH_SECONDS)
