"""The ASGI application: whatever comes in, an answer goes out."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterable
from typing import Any

import pytest

from webhook import https_server
from webhook.apiserver import Answer
from webhook.https_server import MOST_BYTES, Application


class Echo:
    """Answers with the length of what came."""

    def __init__(self, why: str = "") -> None:
        self.why = why

    def why_not_ready(self) -> str:
        return self.why

    async def answer(self, body: bytes) -> Answer:
        return Answer(200, str(len(body)).encode())

    async def mutate(self, body: bytes) -> Answer:
        return Answer(200, str(-len(body)).encode())


def parts(*bodies: bytes) -> list[dict[str, Any]]:
    last = len(bodies) - 1
    return [
        {"type": "http.request", "body": body, "more_body": number < last}
        for number, body in enumerate(bodies)
    ]


async def call(
    method: str,
    path: str,
    messages: Iterable[dict[str, Any]] = (),
    *,
    why: str = "",
    application: Application | None = None,
) -> list[dict[str, Any]]:
    """All that is sent. When the messages are used up the client says nothing any more."""
    waiting, sent = list(messages), []

    async def receive() -> dict[str, Any]:
        if not waiting:
            await asyncio.Event().wait()
        return waiting.pop(0)

    async def send(message: Any) -> None:
        sent.append(message)

    scope = {"type": "http", "method": method, "path": path}
    await (application or Application(Echo(why)))(scope, receive, send)
    return sent


async def status_and_body(*args: Any, **options: Any) -> tuple[int, Any]:
    start, body = await call(*args, **options)
    assert dict(start["headers"])[b"content-length"] == str(len(body["body"])).encode()
    return start["status"], json.loads(body["body"])


async def test_a_body_in_parts_is_put_together() -> None:
    assert await status_and_body("POST", "/validate", parts(b"abc", b"", b"de")) == (200, 5)


async def test_who_mutates_is_asked_on_a_path_of_its_own() -> None:
    assert await status_and_body("POST", "/mutate", parts(b"abc")) == (200, -3)


async def test_the_longest_body_is_read() -> None:
    longest = parts(b"x" * (MOST_BYTES - 1), b"x")

    assert await status_and_body("POST", "/validate", longest) == (200, MOST_BYTES)


async def test_a_longer_one_is_refused() -> None:
    code, status = await status_and_body("POST", "/validate", parts(b"x" * MOST_BYTES, b"x"))

    assert code == 413
    assert status["message"] == f"The body is longer than {MOST_BYTES} bytes."


async def test_a_client_that_stops_in_the_middle_is_not_waited_for(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(https_server, "BODY_SECONDS", 0.01)
    unfinished = [{"type": "http.request", "body": b"abc", "more_body": True}]

    start, _ = await call("POST", "/validate", unfinished)

    assert start["status"] == 408
    assert (b"connection", b"close") in start["headers"]


async def test_a_client_that_went_away_gets_nothing() -> None:
    assert await call("POST", "/validate", [{"type": "http.disconnect"}]) == []


async def test_healthy_while_it_is_not_ready() -> None:
    why = "Not read yet: queues."

    assert (await status_and_body("GET", "/healthz", why=why))[0] == 200
    code, status = await status_and_body("GET", "/readyz", why=why)
    assert (code, status["message"]) == (503, why)


async def test_ready() -> None:
    assert (await status_and_body("GET", "/readyz"))[0] == 200


@pytest.mark.parametrize(
    ("method", "path", "code"),
    [
        ("GET", "/validate", 405),
        ("PUT", "/mutate", 405),
        ("POST", "/readyz", 405),
        ("POST", "/", 404),
        ("PUT", "/x", 404),
    ],
)
async def test_anything_else_is_not_there(method: str, path: str, code: int) -> None:
    assert (await status_and_body(method, path))[0] == code
