"""Traces: what is done about one pod, in all processes, is one trace, whose id is the pod's UID.

So nothing need be carried from one process to another, and whoever has the pod finds the trace.
The packages are the extra `tracing`; where nobody asks for traces, they are not imported.
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
"""For spans that are not sent yet when the process ends."""

TRACE_IDS: list[int] = []
"""That of the span that begins; what the SDK asks for an id is told this."""

PROVIDERS: list[TracerProvider] = []


class TracingError(Exception):
    """Raised when traces are wanted and cannot be made; says why in a sentence."""


def trace_to(endpoint: str, service: str) -> None:
    """Send spans from now on.

    Args:
        endpoint: Of OTLP over gRPC, such as `http://collector:4317`; "" for nowhere. What else
            there is to say, certificates and headers, the variables `OTEL_EXPORTER_OTLP_...` tell.
        service: Who sends them.

    Raises:
        TracingError: The packages are not there.
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
    """When a span begins."""
    return time.time_ns()


def note_span(
    name: str, began_ns: int, pods: Iterable[str], *, failure: str = "", **attributes: str
) -> None:
    """A span that ends now, in the trace of each of these pods.

    Args:
        name: What was done.
        began_ns: See `now_ns`.
        pods: Their UIDs; one that is no UUID has no trace.
        failure: Why it did not succeed; "" where it did.
        attributes: What it was about; their names are sent with points for underscores.
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
    """Send what is not sent yet, if that does not take long."""
    for provider in PROVIDERS:
        sender = threading.Thread(target=provider.force_flush, daemon=True)
        sender.start()
        sender.join(FLUSH_SECONDS)
