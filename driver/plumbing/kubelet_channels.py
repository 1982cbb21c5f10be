"""Channels to the sockets of the kubelet, of agents and of handlers: the driver as client."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import grpc.aio

_OPTIONS = (
    ("grpc.default_authority", "localhost"),
    # A channel that was refused once waits before its next attempt, and so would all channels that
    # share its connection.
    ("grpc.use_local_subchannel_pool", 1),
)


def unix_channel(
    path: Path | str, options: Sequence[tuple[str, str | int]] = ()
) -> grpc.aio.Channel:
    """A channel to the server at this path; use it as a context.

    By default gRPC sends the escaped path as `:authority`. That is not a host, and servers that
    check it, such as those on Rust's h2, end the call at once.
    """
    return grpc.aio.insecure_channel(f"unix:{path}", options=[*_OPTIONS, *options])


LIST_SECONDS = 5.0
"""Timeout of one answer; a healthy kubelet answers in milliseconds."""

LARGEST_LISTING_BYTES = 64 << 20
"""The answer also lists CPUs and memory of every container of the node."""


async def list_pod_resources(path: Path) -> bytes:
    """The kubelet's serialized answer to List of pod-resources' v1.

    Each call has its own connection, and so no backoff after a lost one. The caller imports the
    stubs, because they take memory.

    Raises:
        grpc.aio.AioRpcError: If the kubelet gives no answer.
    """
    options = [("grpc.max_receive_message_length", LARGEST_LISTING_BYTES)]
    async with unix_channel(path, options) as channel:
        method: grpc.aio.UnaryUnaryMultiCallable[bytes, bytes] = channel.unary_unary(
            "/v1.PodResourcesLister/List"
        )
        return await method(b"", timeout=LIST_SECONDS)
