"""A fake API server on a real socket: it answers from a script, faults included.

It stores nothing. What a store does with a true server is tested in tests/e2e.
"""

from __future__ import annotations

import asyncio
import json
from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeAlias

import yaml
from aiohttp import web

from kube.objects import JsonObject

KEEPALIVE_SECONDS = 90.0
"""As long as API servers keep connections that nobody uses."""

Reply: TypeAlias = Callable[[web.Request], Awaitable[web.StreamResponse]]


@dataclass(frozen=True, slots=True)
class Seen:
    """A request that arrived."""

    method: str
    path: str
    query: dict[str, str]
    headers: Mapping[str, str]
    body: Any
    connection: object


@dataclass
class FakeScript:
    """Replies in the order of its script; when that is over, requests are left waiting."""

    script: deque[Reply] = field(default_factory=deque)
    seen: list[Seen] = field(default_factory=list)
    hung_up: int = 0
    kubeconfig: Path = Path()
    arrival: asyncio.Condition = field(default_factory=asyncio.Condition)

    def will(self, *replies: Reply) -> None:
        self.script.extend(replies)

    async def has_seen(self, count: int) -> list[Seen]:
        async with asyncio.timeout(5), self.arrival:
            await self.arrival.wait_for(lambda: len(self.seen) >= count)
        return self.seen

    async def answer(self, request: web.Request) -> web.StreamResponse:
        text = await request.text()
        self.seen.append(
            Seen(
                request.method,
                request.path,
                dict(request.query),
                request.headers,
                json.loads(text) if text else None,
                request.protocol,
            )
        )
        async with self.arrival:
            self.arrival.notify_all()
        reply = self.script.popleft() if self.script else hangs
        try:
            return await reply(request)
        except (asyncio.CancelledError, ConnectionError):
            self.hung_up += 1
            raise


@asynccontextmanager
async def scripted(folder: Path, port: int = 0) -> AsyncIterator[FakeScript]:
    fake = FakeScript()
    async with serving(fake.answer, folder, port) as fake.kubeconfig:
        yield fake


@asynccontextmanager
async def serving(answer: Reply, folder: Path, port: int = 0) -> AsyncIterator[Path]:
    """Serve on a port of loopback, any free one by default; yields a kubeconfig."""
    app = web.Application()
    app.router.add_route("*", "/{path:.*}", answer)
    runner = web.AppRunner(
        app,
        handler_cancellation=True,
        shutdown_timeout=0.1,
        keepalive_timeout=KEEPALIVE_SECONDS,
    )
    await runner.setup()
    try:
        site = web.TCPSite(runner, "127.0.0.1", port)
        await site.start()
        yield kubeconfig_for(folder, runner.addresses[0][1])
    finally:
        await runner.cleanup()


def kubeconfig_for(folder: Path, port: int, user: JsonObject | None = None) -> Path:
    path = folder / "kubeconfig"
    config = {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": "fake",
        "clusters": [{"name": "fake", "cluster": {"server": f"http://127.0.0.1:{port}"}}],
        "users": [{"name": "fake", "user": user or {"token": "secret"}}],
        "contexts": [{"name": "fake", "context": {"cluster": "fake", "user": "fake"}}],
    }
    path.write_text(yaml.safe_dump(config))
    return path


def says(body: Any, status: int = 200, **headers: str) -> Reply:
    async def reply(_: web.Request) -> web.StreamResponse:
        sent = {key.replace("_", "-"): text for key, text in headers.items()}
        return web.json_response(body, status=status, headers=sent)

    return reply


def says_text(text: str, status: int = 200) -> Reply:
    async def reply(_: web.Request) -> web.StreamResponse:
        return web.Response(text=text, status=status)

    return reply


def lists(*items: JsonObject, version: int, more: str = "") -> Reply:
    metadata = {"resourceVersion": str(version)} | ({"continue": more} if more else {})
    return says({"kind": "List", "metadata": metadata, "items": list(items)})


def refuses(status: int, reason: str = "", **headers: str) -> Reply:
    body = {"kind": "Status", "code": status, "reason": reason, "message": "refused"}
    return says(body, status, **headers)


def streams(*chunks: bytes, then: Reply | None = None) -> Reply:
    """Send a watch; afterwards end it properly, or do as another reply says."""

    async def reply(request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse()
        await response.prepare(request)
        for chunk in chunks:
            await response.write(chunk)
        if then:
            return await then(request)
        await response.write_eof()
        return response

    return reply


async def hangs(_: web.Request) -> web.StreamResponse:
    await asyncio.Event().wait()
    raise AssertionError


async def resets(request: web.Request) -> web.StreamResponse:
    assert request.transport
    request.transport.abort()
    raise ConnectionResetError


def event(kind: str, obj: JsonObject) -> bytes:
    return json.dumps({"type": kind, "object": obj}).encode() + b"\n"


def bookmark(version: int) -> bytes:
    return event("BOOKMARK", {"metadata": {"resourceVersion": str(version)}})


def error_event(code: int, reason: str = "") -> bytes:
    return event("ERROR", {"kind": "Status", "code": code, "reason": reason, "message": "m"})
