"""Over loopback, nothing is answered under the name of a page of the web."""

from __future__ import annotations

from collections.abc import Iterator

import aiohttp
import pytest
from fastapi import FastAPI

from kube.http_server import Bound
from scheduler_plugin.extender.http_app import ExtenderApp
from scheduler_plugin.extender.http_hosts import LoopbackHosts
from scheduler_plugin.extender.http_server import serving
from scheduler_plugin.extender.listening import Listening
from tests.asgi import call, healthy, parts

EVIL = "evil.example"


def hosts(bound: Bound) -> Iterator[str]:
    """What `kubectl port-forward`, probes and people say, whatever port is forwarded."""
    for name in ("localhost", "127.0.0.1", "[::1]"):
        yield from (name, f"{name}:8080", f"{name}:{bound.port}")


@pytest.mark.parametrize("address", ["127.0.0.1", "::1", "", "::"])
async def test_what_is_asked_over_loopback_is_asked_of_loopback(address: str) -> None:
    async with (
        serving(healthy, Listening(host=address, port=0, tls=None)) as bound,
        aiohttp.ClientSession() as session,
    ):
        url = f"http://{'[::1]' if ':' in bound.host else '127.0.0.1'}:{bound.port}/"

        async def asked(host: str) -> tuple[int, str]:
            async with session.get(url, headers={"Host": host}) as answer:
                return answer.status, await answer.text()

        assert {(await asked(host))[0] for host in hosts(bound)} == {200}
        for port in ("", f":{bound.port}"):
            code, sentence = await asked(f"{EVIL}{port}")
            assert code == 403
            assert sentence.startswith(f'"{EVIL}{port}" is not a name of this loopback address')


async def test_kube_scheduler_is_answered_at_loopback_and_no_page_of_the_web() -> None:
    app = ExtenderApp(answers=None)  # type: ignore[arg-type]  # Nothing is judged.
    async with (
        serving(app, Listening(host="127.0.0.1", port=0, tls=None)) as bound,
        aiohttp.ClientSession(f"http://127.0.0.1:{bound.port}") as session,
    ):
        async with session.post("/filter", data=b"odd") as answer:
            assert answer.status == 200
        async with session.post("/filter", data=b"odd", headers={"Host": EVIL}) as refused:
            assert refused.status == 403


@pytest.mark.parametrize(
    ("server", "host", "code"),
    [
        ("10.0.0.7", "10.0.0.7:10262", 200),
        ("10.0.0.7", "moorage.example.com", 200),
        ("fd00::7", "[fd00::7]:10262", 200),
        ("::ffff:10.0.0.7", "10.0.0.7", 200),
        ("::ffff:127.0.0.1", "127.0.0.1:10262", 200),
        ("::ffff:127.0.0.1", EVIL, 403),
        ("127.0.0.1", EVIL, 403),
    ],
)
async def test_the_address_counts_where_a_request_came_in(
    server: str, host: str, code: int
) -> None:
    """A kubelet's probe names the pod's IP, an Ingress its own name; both come in elsewhere."""
    app = LoopbackHosts(healthy)

    start, *_ = await call(app, "GET", "/", parts([b""]), {"host": host}, server=server)

    assert start["status"] == code


async def test_who_names_no_host_is_no_browser() -> None:
    start, *_ = await call(LoopbackHosts(FastAPI()), "GET", "/", parts([b""]), server="127.0.0.1")

    assert start["status"] == 404
