"""What both HTTP applications of the plugin are asked, and what they answer: each in one piece."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import NamedTuple, TypeAlias


class Cut(NamedTuple):
    """A body that was not read to its end."""

    why: str


class Request(NamedTuple):
    """A request; its path without a query."""

    method: str
    path: str
    body: bytes | Cut = b""


class Response(NamedTuple):
    """An answer; `closes` where more of the request may come that nobody reads."""

    status: int
    body: bytes
    content_type: bytes = b"application/json"
    closes: bool = False


def plain(status: int, text: str) -> Response:
    """A sentence."""
    # A body that was not read may follow the headers of a request that is refused by them.
    body = text.encode(errors="backslashreplace")
    return Response(status, body, b"text/plain; charset=utf-8", closes=status in (403, 404, 405))


def not_allowed(method: str) -> Response:
    """The answer to every method but this one."""
    return plain(405, f"Only {method} is answered here.")


Application: TypeAlias = Callable[[Request], Awaitable[Response]]
