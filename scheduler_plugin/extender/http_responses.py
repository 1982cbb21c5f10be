"""What both HTTP applications of the plugin answer with: an ASGI response in one piece."""

from __future__ import annotations

from typing import NamedTuple

from kube.http_server import Send


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


async def respond(response: Response, send: Send) -> None:
    """Send an answer."""
    status, body, content_type, closes = response
    headers = [
        (b"content-type", content_type),
        (b"content-length", str(len(body)).encode()),
    ]
    if closes:
        headers.append((b"connection", b"close"))
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": body})
