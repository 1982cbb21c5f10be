"""A secure channel to an OPC UA server without encryption, on which services are asked.

Messages and chunks are those of OPC UA part 6, 6.7 (secure conversation) and 7.1 (connections);
policy None means that they are neither signed nor encrypted.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any, TypeVar

from driver.discovery.opcua.codecs import (
    Answer,
    Buffer,
    header_from_binary,
    header_to_binary,
    struct_from_binary,
    struct_to_binary,
    ua,
    uatcp_to_binary,
)

T = TypeVar("T")

HEADER_SIZE = 8
"""Bytes before which nobody knows how long a chunk is."""

LIFETIME_MILLISECONDS = 60_000
LONGEST_CHUNK = 65_535
"""Bytes, as told to the server in Hello."""

FAULT = ua.FourByteNodeId(ua.ObjectIds.ServiceFault_Encoding_DefaultBinary)


class ChannelError(Exception):
    """Raised when a server answers what it may not; the text goes into a sentence."""


class Channel:
    """One connection.

    Args:
        longest: Bytes that are read from it at most.
    """

    def __init__(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, longest: int
    ) -> None:
        self._reader = reader
        self._writer = writer
        self._longest = self._left = longest
        self._sequence_number = 0
        self._channel_id = 0
        self._token_id = 0

    async def open(self, url: str) -> None:
        """Greet the server of this URL, and open a channel."""
        await self.greet(url)
        request = ua.OpenSecureChannelRequest()
        request.Parameters.RequestType = ua.SecurityTokenRequestType.Issue
        request.Parameters.SecurityMode = ua.MessageSecurityMode.None_
        request.Parameters.RequestedLifetime = LIFETIME_MILLISECONDS
        kind = ua.MessageType.SecureOpen
        answered = ua.OpenSecureChannelResponse().TypeId
        token = (await self._ask(request, answered, ua.OpenSecureChannelResult, kind)).SecurityToken
        self._channel_id, self._token_id = token.ChannelId, token.TokenId

    async def greet(self, url: str) -> None:
        """Greet the server of this URL, and wait for its greeting."""
        hello = ua.Hello(
            ReceiveBufferSize=LONGEST_CHUNK,
            SendBufferSize=LONGEST_CHUNK,
            MaxMessageSize=self._longest,
            EndpointUrl=url,
        )
        self._writer.write(uatcp_to_binary(ua.MessageType.Hello, hello))
        await self._chunk(ua.MessageType.Acknowledge)

    async def ask(self, request: Any, answered: ua.NodeId, result: type[T]) -> T:
        """What the server answers to a service's request, without what every answer starts with.

        Args:
            request: Its number and its channel are written here.
            answered: The type of the answer.
            result: The class of what is in it.

        Raises:
            UaStatusCodeError: If that is a fault.
            ChannelError: If it is no answer.
        """
        return await self._ask(request, answered, result, ua.MessageType.SecureMessage)

    def close(self) -> None:
        """Say good-bye; a server does not answer to that."""
        self._send(ua.CloseSecureChannelRequest(), ua.MessageType.SecureClose)

    async def _ask(self, request: Any, answered: ua.NodeId, result: type[T], kind: bytes) -> T:
        self._send(request, kind)
        body = await self._message(kind)
        answer = struct_from_binary(Answer, body)
        if answer.type_id not in (answered, FAULT):
            raise ChannelError("it answers something else")
        answer.service_result.check()
        if answer.type_id == FAULT:
            raise ChannelError("it refuses without a reason")
        content: T = struct_from_binary(result, body)
        return content

    def _send(self, request: Any, kind: bytes) -> None:
        self._sequence_number += 1
        request.RequestHeader.RequestHandle = self._sequence_number
        place = ua.SequenceHeader(self._sequence_number, self._sequence_number)
        parts = (self._security(kind), place, request)
        body = b"".join(struct_to_binary(part) for part in parts)
        header = ua.Header(kind, ua.ChunkType.Single, self._channel_id)
        header.body_size = len(body)
        self._writer.write(header_to_binary(header) + body)

    def _security(self, kind: bytes) -> object:
        if kind == ua.MessageType.SecureOpen:
            return ua.AsymmetricAlgorithmHeader()
        return ua.SymmetricAlgorithmHeader(self._token_id)

    async def _message(self, kind: bytes) -> Buffer:
        """The bodies of all chunks of the next message."""
        bodies = []
        last = False
        while not last:
            chunk_type, chunk = await self._chunk(kind)
            struct_from_binary(type(self._security(kind)), chunk)
            struct_from_binary(ua.SequenceHeader, chunk)
            last = chunk_type == ua.ChunkType.Single
            if not last and chunk_type != ua.ChunkType.Intermediate:
                raise ChannelError("it broke its answer off")
            bodies.append(chunk.read(len(chunk)))
        return Buffer(b"".join(bodies))

    async def _chunk(self, kind: bytes) -> tuple[bytes, Buffer]:
        """The next chunk's type, and what follows its header."""
        start = await self._read(HEADER_SIZE)
        if start[:3] not in (kind, ua.MessageType.Error):
            raise ChannelError("it does not speak OPC UA")
        size = int.from_bytes(start[4:], "little")
        buffer = Buffer(start + await self._read(max(0, size - HEADER_SIZE)))
        header = header_from_binary(buffer)
        if header.MessageType == ua.MessageType.Error:
            struct_from_binary(ua.ErrorMessage, buffer).Error.check()
        return header.ChunkType, buffer

    async def _read(self, size: int) -> bytes:
        self._left -= size
        if self._left < 0:
            raise ChannelError(f"its answer is longer than {self._longest // 1024} KiB")
        return await self._reader.readexactly(size)


@asynccontextmanager
async def connected(
    streams: tuple[asyncio.StreamReader, asyncio.StreamWriter], url: str, longest: int
) -> AsyncIterator[Channel]:
    """A channel to the server of a URL on a new connection, which is closed after it.

    Raises:
        OSError: If the connection ends.
        ChannelError, UaStatusCodeError: If it does not open a channel.
    """
    reader, writer = streams
    try:
        channel = Channel(reader, writer, longest)
        await channel.open(url)
        yield channel
        channel.close()
    except BaseException:
        writer.transport.abort()
        raise
    writer.close()
