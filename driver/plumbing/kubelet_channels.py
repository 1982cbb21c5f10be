"""Channels to the sockets of the kubelet, of agents and of handlers: this driver as a client."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import grpc.aio

_OPTIONS = (
    ("grpc.default_authority", "localhost"),
    # A channel that was refused once waits before it tries again, and so would those that share
    # its connection.
    ("grpc.use_local_subchannel_pool", 1),
)


def unix_channel(
    path: Path | str, options: Sequence[tuple[str, str | int]] = ()
) -> grpc.aio.Channel:
    """A channel to the server at this path; use it as a context.

    gRPC would take the path for the name of the server and send it, escaped, as `:authority`. That
    is no host, and servers that look, as those on Rust's h2 do, end such a call at once.
    """
    return grpc.aio.insecure_channel(f"unix:{path}", options=[*_OPTIONS, *options])


LIST_SECONDS = 5.0
"""For one answer; the kubelet has it in milliseconds, unless it is stuck."""

LARGEST_LISTING_BYTES = 64 << 20
"""The answer names CPUs and memory of every container of the node too."""


async def list_pod_resources(path: Path) -> bytes:
    """The kubelet's answer to List of pod-resources' v1, as it came.

    On a connection of its own, which needs no waiting after loss. The stubs take memory, so who
    needs the answer has them.

    Raises:
        grpc.aio.AioRpcError: If there is none.
    """
    options = [("grpc.max_receive_message_length", LARGEST_LISTING_BYTES)]
    async with unix_channel(path, options) as channel:
        method: grpc.aio.UnaryUnaryMultiCallable[bytes, bytes] = channel.unary_unary(
            "/v1.PodResourcesLister/List"
        )
        return await method(b"", timeout=LIST_SECONDS)
