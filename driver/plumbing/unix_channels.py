"""Channels of gRPC to servers at UNIX sockets.

gRPC would take the path for the name of the server and send it, escaped, as `:authority`. That is
no host, and servers that look, as those on Rust's h2 do, end such a call at once.
"""

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
    """A channel to the server at this path; use it as a context."""
    return grpc.aio.insecure_channel(f"unix:{path}", options=[*_OPTIONS, *options])
