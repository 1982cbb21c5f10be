"""An OPC UA server that opens a channel, and answers its service with what a test wants."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager

from asyncua import ua
from asyncua.ua.ua_binary import struct_to_binary, uatcp_to_binary

CHANNEL, TOKEN = 7, 13
ACKNOWLEDGE = uatcp_to_binary(ua.MessageType.Acknowledge, ua.Acknowledge())

Chunk = tuple[bytes, bytes]
"""Its type, and the part of the body in it."""


def opened() -> bytes:
    """The answer to OpenSecureChannel."""
    response = ua.OpenSecureChannelResponse()
    response.Parameters.SecurityToken.ChannelId = CHANNEL
    response.Parameters.SecurityToken.TokenId = TOKEN
    security = struct_to_binary(ua.AsymmetricAlgorithmHeader())
    return _chunk(b"OPNF", security, struct_to_binary(response), ua.SequenceHeader(1, 1))


def found(*names: str, addition: ua.ExtensionObject | None = None) -> bytes:
    """The body of an answer to FindServers, and what a server adds to its header."""
    response = ua.FindServersResponse()
    if addition is not None:
        response.ResponseHeader.AdditionalHeader = addition
    response.Servers = [
        ua.ApplicationDescription(ApplicationName=ua.LocalizedText(name)) for name in names
    ]
    return bytes(struct_to_binary(response))


def fault(code: int) -> bytes:
    """The body of an answer that refuses."""
    header = ua.ResponseHeader(ServiceResult=ua.StatusCode(code))
    return bytes(struct_to_binary(ua.ServiceFault(ResponseHeader=header)))


@asynccontextmanager
async def fake_server(*answers: bytes) -> AsyncIterator[str]:
    """A server that answers each message with the next of these, and the last for ever."""
    served: set[asyncio.Task[None] | None] = set()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        served.add(asyncio.current_task())
        left = list(answers)
        try:
            while await reader.read(65536):
                writer.write(left.pop(0) if len(left) > 1 else left[0])
                await writer.drain()
        except ConnectionError:
            pass
        writer.transport.abort()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    async with server:
        yield f"opc.tcp://127.0.0.1:{server.sockets[0].getsockname()[1]}/"
        await asyncio.gather(*(task for task in served if task))


def message(chunks: Sequence[Chunk]) -> bytes:
    """The answer to the first request on the channel."""
    security = struct_to_binary(ua.SymmetricAlgorithmHeader(TOKEN))
    return b"".join(
        _chunk(b"MSG" + kind, security, body, ua.SequenceHeader(number, 2))
        for number, (kind, body) in enumerate(chunks, start=2)
    )


def _chunk(kind: bytes, security: bytes, body: bytes, place: ua.SequenceHeader) -> bytes:
    rest = CHANNEL.to_bytes(4, "little") + security + struct_to_binary(place) + body
    return bytes(kind + (len(rest) + 8).to_bytes(4, "little") + rest)
