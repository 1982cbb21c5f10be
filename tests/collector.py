"""A collector of traces: OTLP over gRPC, by the official messages."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import grpc
from opentelemetry.proto.collector.trace.v1 import trace_service_pb2 as messages
from opentelemetry.proto.collector.trace.v1 import trace_service_pb2_grpc as service
from opentelemetry.proto.trace.v1.trace_pb2 import Span


@dataclass
class Collector(service.TraceServiceServicer):
    """What was sent to it.

    Attributes:
        endpoint: Where it listens.
        spans: As they came.
        services: Who sent them.
    """

    endpoint: str = ""
    spans: list[Span] = field(default_factory=list)
    services: set[str] = field(default_factory=set)

    @classmethod
    @contextmanager
    def listening(cls, host: str = "127.0.0.1") -> Iterator[Collector]:
        server = grpc.server(ThreadPoolExecutor(1))
        port = server.add_insecure_port(f"{host}:0")
        found = cls(f"http://{host}:{port}")
        service.add_TraceServiceServicer_to_server(found, server)  # type: ignore[no-untyped-call]
        server.start()
        yield found
        server.stop(None).wait()

    def Export(  # noqa: N802
        self, request: messages.ExportTraceServiceRequest, context: Any
    ) -> messages.ExportTraceServiceResponse:
        for sent in request.resource_spans:
            told = {a.key: a.value.string_value for a in sent.resource.attributes}
            self.services.add(told["service.name"])
            for scope in sent.scope_spans:
                self.spans.extend(scope.spans)
        return messages.ExportTraceServiceResponse()
