"""A gRPC server at a UNIX socket that looks at `:authority` as Rust's h2 does.

Servers on plain tonic and h2 end a stream with PROTOCOL_ERROR whose `:authority` is none.
Frames and headers are those of another project's HTTP/2.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any

from google.protobuf.message import Message
from h2 import events
from h2.config import H2Configuration
from h2.connection import H2Connection
from h2.errors import ErrorCodes

_PLAIN = r"[-A-Za-z0-9._~!$&'()*+,;=]"
AUTHORITY = re.compile(
    rf"(?:(?:{_PLAIN}|%[0-9A-Fa-f]{{2}}|:)*@)?(?:\[[0-9A-Fa-f:.]+\]|{_PLAIN}*)(?::[0-9]*)?"
)
"""As the crate http has it: nothing in the host is percent-encoded."""


class StrictServer:
    """Answers each call with the same messages.

    Args:
        answers: In this order.
        ends: Whether the call ends after them; else it stays open.

    Attributes:
        paths: The methods that were called.
        refused: The authorities that are none.
    """

    def __init__(self, answers: Sequence[Message], *, ends: bool) -> None:
        self.paths: list[str] = []
        self.refused: list[str] = []
        self._tasks: set[asyncio.Task[None]] = set()
        self._writers: set[asyncio.StreamWriter] = set()
        self._answers = answers
        self._ends = ends

    @asynccontextmanager
    async def at(self, path: Path) -> AsyncIterator[None]:
        server = await asyncio.start_unix_server(self._serve, path)
        try:
            yield
        finally:
            server.close()
            for writer in self._writers:
                writer.transport.abort()
            await asyncio.gather(*self._tasks)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task
        self._tasks.add(task)
        self._writers.add(writer)
        connection = H2Connection(H2Configuration(client_side=False, header_encoding=None))
        connection.initiate_connection()
        with suppress(ConnectionError):
            writer.write(connection.data_to_send())
            while data := await reader.read(65536):
                for event in connection.receive_data(data):
                    self._on(event, connection)
                writer.write(connection.data_to_send())
                await writer.drain()
        writer.close()

    def _on(self, event: events.Event, connection: H2Connection) -> None:
        if isinstance(event, events.DataReceived) and event.stream_id is not None:
            connection.acknowledge_received_data(event.flow_controlled_length, event.stream_id)
        if isinstance(event, events.RequestReceived):
            self._requested(event, connection)
        if isinstance(event, events.StreamEnded) and event.stream_id is not None:
            self._answer(event.stream_id, connection)

    def _requested(self, event: events.RequestReceived, connection: H2Connection) -> None:
        headers: dict[Any, Any] = dict(event.headers)
        self.paths.append(headers[b":path"].decode())
        if not AUTHORITY.fullmatch(headers[b":authority"].decode()):
            self.refused.append(headers[b":authority"].decode())
            connection.reset_stream(event.stream_id, ErrorCodes.PROTOCOL_ERROR)

    def _answer(self, stream: int, connection: H2Connection) -> None:
        if self.refused:
            return
        connection.send_headers(stream, [(":status", "200"), ("content-type", "application/grpc")])
        for answer in self._answers:
            body = answer.SerializeToString()
            connection.send_data(stream, b"\0" + len(body).to_bytes(4, "big") + body)
        if self._ends:
            connection.send_headers(stream, [("grpc-status", "0")], end_stream=True)
