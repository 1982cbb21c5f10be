"""A conversation with an external discovery handler: one `Discover` stream."""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncGenerator, Callable
from contextlib import ExitStack
from dataclasses import dataclass

import grpc.aio

from driver.discovery_api.v0 import discovery_pb2 as v0
from driver.handlers.handler_sources import DiscoveryError
from driver.handlers.messages import target_of
from driver.handlers.registrations import Registration
from driver.handlers.report_limits import too_large
from driver.handlers.sdk_requests import TlsFiles
from driver.handlers.tls import channel_credentials
from driver.plumbing.kubelet_channels import unix_channel

CONNECT_SECONDS = 10.0

SLOT_SECONDS = 1.0
"""How long a handler without an answer delays calls to other handlers."""

_DISCOVER = "/v0.DiscoveryHandler/Discover"

_LONGEST_SENTENCE = 300

_TOO_LARGE = re.compile(r"(?<!SERVER: )Received message larger than max")
"""gRPC's error text if an answer is too large here; a handler reports a large request so."""

_OPTIONS = [
    # A channel that was refused once waits before it tries again, and so would those that share
    # its connection.
    ("grpc.use_local_subchannel_pool", 1),
    # Handlers are on this node or beside it.
    ("grpc.enable_http_proxy", 0),
    # Detects an absent machine. gRPC servers accept at most one ping in five minutes.
    ("grpc.keepalive_time_ms", 310_000),
    ("grpc.keepalive_timeout_ms", 20_000),
]

_REFUSALS = frozenset(
    {
        grpc.StatusCode.INVALID_ARGUMENT,
        grpc.StatusCode.NOT_FOUND,
        grpc.StatusCode.ALREADY_EXISTS,
        grpc.StatusCode.PERMISSION_DENIED,
        grpc.StatusCode.UNAUTHENTICATED,
        grpc.StatusCode.FAILED_PRECONDITION,
        grpc.StatusCode.OUT_OF_RANGE,
        grpc.StatusCode.UNIMPLEMENTED,
        grpc.StatusCode.RESOURCE_EXHAUSTED,
    }
)
"""Codes with which a healthy handler refuses; gRPC uses one for an answer that is too large."""


class AskSlots:
    """Limits how many handlers without an answer are asked concurrently: answers may be large.

    At a start all handlers would answer at once, and an answer is in memory before it is refused.
    """

    def __init__(self, number: int) -> None:
        self._free = asyncio.Semaphore(number)

    async def take(self) -> ExitStack:
        """Wait for a slot. Closing the result frees the slot; so does `SLOT_SECONDS`."""
        await self._free.acquire()
        slot = ExitStack()
        slot.callback(self._free.release)
        asyncio.get_running_loop().call_later(SLOT_SECONDS, slot.close)
        return slot


class LostError(DiscoveryError):
    """Raised when a handler cannot be reached, or ends the stream."""


class RefusedError(DiscoveryError):
    """Raised when a handler is reached, and refuses this request."""


@dataclass(frozen=True, slots=True)
class Terms:
    """The limits and settings of a conversation.

    Attributes:
        slots: The limit of concurrent calls to handlers of its kind.
        largest_bytes: Bytes that an answer may have.
        tls: Files for handlers that register with TLS; None if none are set.
    """

    slots: AskSlots
    largest_bytes: int
    tls: TlsFiles | None = None


async def discover(
    registration: Registration,
    request: v0.DiscoverRequest,
    on_reached: Callable[[], None],
    terms: Terms,
) -> AsyncGenerator[bytes, None]:
    """Call a handler, and yield its answers until it is lost.

    Answers are serialized `v0.DiscoverResponse`: parsed they may take a hundred times the memory.

    Args:
        registration: Where the handler listens.
        request: The request.
        on_reached: Called when the connection is open.
        terms: The limits and settings.

    Raises:
        LostError: At the end of the stream, unless the caller closes it before.
        RefusedError: If the handler refuses the request.
    """
    try:
        async with _channel(registration, terms) as channel:
            await _connect(channel)
            on_reached()
            method: grpc.aio.UnaryStreamMultiCallable[bytes, bytes] = channel.unary_stream(
                _DISCOVER
            )
            with await terms.slots.take() as slot:
                call = method(request.SerializeToString())
                # Iteration would keep each answer in memory until the next.
                while isinstance(answer := await call.read(), bytes):
                    yield answer
                    del answer
                    slot.close()
    except grpc.aio.AioRpcError as error:
        kind = RefusedError if error.code() in _REFUSALS else LostError
        raise kind(_sentence(error, registration, terms.largest_bytes)) from error
    raise LostError("The handler ended the conversation.")


async def or_pauses(
    messages: AsyncGenerator[bytes, None], pause: Callable[[], float | None]
) -> AsyncGenerator[bytes | None, None]:
    """Yield each message, and None after each pause without a message.

    Args:
        messages: The messages of a conversation; its errors are passed on.
        pause: Seconds of the next pause; None to wait for a message without a limit.
    """
    coming: asyncio.Future[bytes] | None = None
    try:
        while True:
            coming = coming or asyncio.ensure_future(anext(messages))
            done, _ = await asyncio.wait((coming,), timeout=pause())
            if not done:
                yield None
                continue
            message, coming = coming.result(), None
            yield message
            del message  # Free a large message while the next is awaited.
    except StopAsyncIteration:
        return
    finally:
        if coming is not None:
            coming.cancel()
            await asyncio.wait((coming,))


def _channel(registration: Registration, terms: Terms) -> grpc.aio.Channel:
    endpoint, target = registration.endpoint, target_of(registration)
    options = [*_OPTIONS, ("grpc.max_receive_message_length", terms.largest_bytes)]
    if not registration.network:
        return unix_channel(endpoint.address, options)
    if not registration.tls:
        return grpc.aio.insecure_channel(target, options=options)
    if terms.tls is None:
        raise LostError("It speaks TLS, and the driver has no certificate (--handler-tls-cert).")
    try:
        credentials = channel_credentials(terms.tls)
    except OSError as error:
        raise LostError(f"A file of --handler-tls-* cannot be read: {error.strerror}.") from error
    # Its address changes with its pod; its certificate has its name.
    name = ("grpc.ssl_target_name_override", endpoint.name)
    return grpc.aio.secure_channel(target, credentials, options=[*options, name])


async def _connect(channel: grpc.aio.Channel) -> None:
    """Wait until the connection is open, for `CONNECT_SECONDS`; there is one attempt."""
    failed = (grpc.ChannelConnectivity.TRANSIENT_FAILURE, grpc.ChannelConnectivity.SHUTDOWN)
    try:
        async with asyncio.timeout(CONNECT_SECONDS):
            state = channel.get_state(try_to_connect=True)
            while state is not grpc.ChannelConnectivity.READY:
                if state in failed:
                    raise LostError("The handler cannot be reached.")
                await channel.wait_for_state_change(state)
                state = channel.get_state(try_to_connect=True)
    except TimeoutError:
        raise LostError(f"The handler was not reached in {CONNECT_SECONDS:g} s.") from None


def _sentence(error: grpc.aio.AioRpcError, registration: Registration, largest: int) -> str:
    details = " ".join((error.details() or "").split())
    if error.code() is grpc.StatusCode.RESOURCE_EXHAUSTED and _TOO_LARGE.search(details):
        return too_large(registration, largest)
    printable = "".join(c if c.isprintable() else "?" for c in details)
    return f"{error.code().name}: {printable[:_LONGEST_SENTENCE]}"
