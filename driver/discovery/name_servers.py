"""Name servers, queried in own threads: a slow name delays only other names."""

from __future__ import annotations

import asyncio
import socket
from concurrent.futures import ThreadPoolExecutor
from functools import partial

_threads = ThreadPoolExecutor(4, thread_name_prefix="names")


async def look_up(host: str, port: int) -> list[str]:
    """All addresses of a name; an address gives itself.

    Raises:
        OSError: If the name has no address.
        UnicodeError: If `host` is not a valid name.
    """
    look = partial(socket.getaddrinfo, host, port, socket.AF_UNSPEC, socket.SOCK_STREAM)
    found = await asyncio.get_running_loop().run_in_executor(_threads, look)
    return [_shown(to) for *_, to in found]


def _shown(to: tuple[str, int] | tuple[str, int, int, int] | tuple[int, bytes]) -> str:
    """The address in a socket address; a link-local address comes with its interface."""
    scope = to[3] if len(to) == 4 else 0
    return f"{to[0]!s}%{scope}" if scope and "%" not in str(to[0]) else str(to[0])
