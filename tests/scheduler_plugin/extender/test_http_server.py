"""The extender's server over real sockets: every call is answered, whatever the client does."""

from __future__ import annotations

import asyncio
import contextlib
import dataclasses
import functools
import io
import json
import logging
import shutil
import socket
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any, cast

import aiohttp
import pytest
from starlette.types import ASGIApp

from kube import http_server
from kube.http_server import Bound, CannotListenError
from kube.live_tls import follow_files
from kube.shapes.reading import JsonObject
from local_cluster.authority import Authority
from local_cluster.certificates import CertificateSpec
from scheduler_plugin.extender import kube_scheduler_backlog as turns
from scheduler_plugin.extender.http_app import ExtenderApp, Limits
from scheduler_plugin.extender.http_server import serving
from scheduler_plugin.extender.kube_scheduler import Extender
from scheduler_plugin.extender.listening import Listening, TlsFiles
from scheduler_plugin.extender.messages import Answer, BindArguments, NotAnswered, Passed
from scheduler_plugin.judging.verdicts import Refused
from scheduler_plugin.objects.names import Reason

LOOPBACK = Listening(host="127.0.0.1", port=0, tls=None)
POD = {"metadata": {"namespace": "default", "name": "a", "uid": "1"}}
FILTER = {"Pod": POD, "Nodes": None, "NodeNames": ["node-1", "node-2"]}
PREEMPT = {"Pod": POD, "NodeNameToMetaVictims": {"node-1": {"Pods": [{"UID": "u"}]}}}
BIND = {"PodName": "a", "PodNamespace": "default", "PodUID": "1", "Node": "node-1"}
REFUSED = Refused(Reason.OVER_LIMIT, "Enough.")
CALLS = {"/filter": FILTER, "/preempt": PREEMPT, "/bind": BIND}
VERBS = list(CALLS)


class FakeExtender:
    """Answers what a test tells it to."""

    def __init__(self) -> None:
        self.answer: Answer = Passed()
        self.failure: Exception | None = None
        self.on_bind: Callable[[BindArguments], Awaitable[str]] = self._bind
        self.bound: set[str] = set()
        self.may_settle = asyncio.Event()
        self.may_settle.set()
        self.pods: list[JsonObject] = []

    async def await_lease(self) -> None:
        await self.may_settle.wait()

    async def filter_once_known(self, pod: JsonObject) -> Answer:
        return self.filter(pod)

    def filter(self, pod: JsonObject) -> Answer:
        self.pods.append(pod)
        self._fail()
        return self.answer

    def preempt(self, pod: JsonObject) -> Answer:
        return self.filter(pod)

    async def bind(self, arguments: BindArguments) -> str:
        self._fail()
        return await self.on_bind(arguments)

    async def is_bound(self, arguments: BindArguments) -> bool:
        return arguments.name in self.bound

    async def _bind(self, arguments: BindArguments) -> str:
        return "" if arguments.node == "node-1" else "No such node."

    def _fail(self) -> None:
        if self.failure:
            raise self.failure


class Client:
    """An HTTP client of one server."""

    def __init__(self, session: aiohttp.ClientSession, bound: Bound) -> None:
        self._session = session
        self.bound = bound

    async def call(self, path: str, body: object) -> Any:
        """POST JSON, or bytes as they are; expects status 200."""
        data = body if isinstance(body, bytes) else json.dumps(body).encode()
        async with self._session.post(path, data=io.BytesIO(data)) as response:
            assert response.status == 200
            assert response.content_type == "application/json"
            return await response.json()

    async def ask(self, method: str, path: str, data: Any = None) -> tuple[int, str]:
        async with self._session.request(method, path, data=data) as response:
            return response.status, await response.text()

    async def stream(self) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        return await asyncio.open_connection(self.bound.host, self.bound.port)


def served(
    plugin: FakeExtender, limits: Limits | None = None
) -> AbstractAsyncContextManager[Client]:
    limits = limits or Limits()
    return serving_app(ExtenderApp(cast(Extender, plugin), limits), limits)


@asynccontextmanager
async def serving_app(app: ASGIApp, limits: Limits | None = None) -> AsyncIterator[Client]:
    async with (
        serving(app, LOOPBACK, limits or Limits()) as bound,
        aiohttp.ClientSession(f"http://{bound.host}:{bound.port}") as session,
    ):
        yield Client(session, bound)


@pytest.fixture
def plugin() -> FakeExtender:
    return FakeExtender()


@pytest.fixture
async def client(plugin: FakeExtender) -> AsyncIterator[Client]:
    async with served(plugin) as client:
        yield client


async def read_response(reader: asyncio.StreamReader) -> tuple[bytes, Any]:
    """The head of a response, and its JSON."""
    head = await reader.readuntil(b"\r\n\r\n")
    length = int(head.split(b"content-length: ")[1].split(b"\r\n")[0])
    return head, json.loads(await reader.readexactly(length))


def request(path: str, body: bytes, *headers: str) -> bytes:
    lines = [f"POST {path} HTTP/1.1", "Host: localhost", f"Content-Length: {len(body)}", *headers]
    return "\r\n".join([*lines, "", ""]).encode() + body


async def test_filter_passes(client: Client, plugin: FakeExtender) -> None:
    assert await client.call("/filter", FILTER) == {
        "NodeNames": ["node-1", "node-2"],
        "Error": "",
    }
    assert plugin.pods == [POD]


async def test_filter_refuses(client: Client, plugin: FakeExtender) -> None:
    plugin.answer = REFUSED

    assert await client.call("/filter", FILTER) == {
        "NodeNames": [],
        "FailedAndUnresolvableNodes": dict.fromkeys(["node-1", "node-2"], "OverLimit: Enough"),
        "Error": "",
    }


async def test_filter_is_not_answered(client: Client, plugin: FakeExtender) -> None:
    plugin.answer = NotAnswered("Not in sync.")

    assert await client.call("/filter", FILTER) == {"Error": "Not in sync."}


async def test_preempt_passes(client: Client) -> None:
    victims = PREEMPT["NodeNameToMetaVictims"]

    assert await client.call("/preempt", PREEMPT) == {"NodeNameToMetaVictims": victims}


async def test_preempt_refuses(client: Client, plugin: FakeExtender) -> None:
    plugin.answer = REFUSED

    assert await client.call("/preempt", PREEMPT) == {"NodeNameToMetaVictims": {}}


async def test_bind_binds_or_says_why_not(client: Client) -> None:
    assert await client.call("/bind", BIND) == {"Error": ""}
    assert await client.call("/bind", {**BIND, "Node": "x"}) == {"Error": "No such node."}


async def test_filter_waits_until_one_of_many_before_is_bound(
    plugin: FakeExtender, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(turns, "LONGEST_SECONDS", 60)
    app = ExtenderApp(cast(Extender, plugin), Limits(in_flight=1))
    await app.filter(json.dumps(FILTER).encode())
    second = asyncio.create_task(app.filter(json.dumps(FILTER).encode()))
    for _ in range(3):
        await asyncio.sleep(0)
    assert len(plugin.pods) == 1

    await app.bind(json.dumps(BIND).encode())
    await second

    assert len(plugin.pods) == 2


async def test_refused_pod_is_not_on_its_way(
    plugin: FakeExtender, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(turns, "LONGEST_SECONDS", 60)
    plugin.answer = REFUSED
    app = ExtenderApp(cast(Extender, plugin), Limits(in_flight=1))
    async with asyncio.timeout(5):
        for _ in range(2):
            await app.filter(json.dumps(FILTER).encode())

    assert len(plugin.pods) == 2


@pytest.mark.parametrize("path", ["/healthz", "/readyz", "/waiting/default/p0"])
async def test_the_port_that_binds_has_no_pages(client: Client, path: str) -> None:
    assert await client.ask("GET", path) == (404, f"There is no {path} here.")


@pytest.mark.parametrize(
    ("method", "path", "answer"),
    [
        ("GET", "/filter", (405, "Only POST is answered here.")),
        ("PUT", "/bind", (405, "Only POST is answered here.")),
        ("POST", "/", (404, "There is no / here.")),
        ("POST", "/filter/", (404, "There is no /filter/ here.")),
        ("GET", "/p%C3%BC", (404, "There is no /pü here.")),
    ],
)
async def test_wrong_path_or_method(
    client: Client, method: str, path: str, answer: tuple[int, str]
) -> None:
    assert await client.ask(method, path, b"{}") == answer


@pytest.mark.parametrize("path", VERBS)
async def test_malformed_call_is_told_why(
    client: Client, path: str, caplog: pytest.LogCaptureFixture
) -> None:
    first = "PodName" if path == "/bind" else "Pod"

    assert (await client.call(path, {}))["Error"] == f"{first}: must be set."
    assert f"malformed path={path} why={first}: must be set." in caplog.messages


@pytest.mark.parametrize("path", VERBS)
async def test_fault_is_answered_and_logged(
    client: Client, plugin: FakeExtender, path: str, caplog: pytest.LogCaptureFixture
) -> None:
    plugin.failure = RuntimeError("a fault")

    assert (await client.call(path, CALLS[path]))["Error"] == (
        "internal error: RuntimeError: a fault"
    )
    assert [record.exc_info is not None for record in caplog.records] == [True]


@pytest.mark.parametrize("path", VERBS)
async def test_five_megabytes_are_answered_with_an_error(client: Client, path: str) -> None:
    body = b'{"Pod":"' + b"x" * 5_000_000 + b'"}'

    assert (await client.call(path, body))["Error"] == "body: it is larger than 4194304 bytes."


async def test_endless_body_is_answered_and_cut(plugin: FakeExtender) -> None:
    async with served(plugin, Limits(body=1000, discarded=2000)) as client:
        reader, writer = await client.stream()
        writer.write(b"POST /filter HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n")
        writer.write(b"7d1\r\n" + b"x" * 2001 + b"\r\n")  # and no last chunk

        head, answer = await read_response(reader)

        assert answer == {"Error": "body: it is larger than 1000 bytes."}
        assert b"connection: close" in head
        assert await reader.read() == b""
        writer.close()


async def test_body_of_the_limit_is_read(plugin: FakeExtender) -> None:
    body = json.dumps(FILTER).encode()
    async with served(plugin, Limits(body=len(body))) as client:
        assert (await client.call("/filter", body))["Error"] == ""
        assert "larger" in (await client.call("/filter", body + b" "))["Error"]


async def test_chunked_body_is_put_together(client: Client) -> None:
    names = [f"node-{number}" for number in range(5000)]
    body = json.dumps({**FILTER, "NodeNames": names}).encode()

    async def chunks() -> AsyncIterator[bytes]:
        for start in range(0, len(body), 1000):
            yield body[start : start + 1000]

    status, text = await client.ask("POST", "/filter", chunks())

    assert (status, json.loads(text)) == (200, {"NodeNames": names, "Error": ""})


async def test_client_that_stalls_in_its_body_is_cut(plugin: FakeExtender) -> None:
    async with served(plugin, Limits(receive_seconds=0.05)) as client:
        reader, writer = await client.stream()
        writer.write(request("/filter", b"{" * 10)[:-5])

        _, answer = await read_response(reader)

        assert answer == {"Error": "body: only 5 bytes arrived within 0.05 s."}
        assert await reader.read() == b""
        writer.close()


@pytest.mark.parametrize(
    ("begun", "limit"),
    [
        (b"", "KEEP_ALIVE_SECONDS"),
        (b"\r\n", "KEEP_ALIVE_SECONDS"),
        (b"P", "HEAD_SECONDS"),
        (b"POST /filter HTTP/1.1\r\nHost", "HEAD_SECONDS"),
    ],
)
async def test_client_that_stalls_in_its_headers_is_cut(
    plugin: FakeExtender, monkeypatch: pytest.MonkeyPatch, begun: bytes, limit: str
) -> None:
    monkeypatch.setattr(http_server, limit, 0.05)
    async with served(plugin) as client:
        reader, writer = await client.stream()
        writer.write(begun)

        assert await reader.read() == b""
        writer.close()


async def test_client_that_stalls_in_its_second_headers_is_cut(
    plugin: FakeExtender, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(http_server, "HEAD_SECONDS", 0.05)
    async with served(plugin) as client:
        reader, writer = await client.stream()
        writer.write(request("/filter", b"{}") + b"POST /filter")
        await read_response(reader)

        assert await reader.read() == b""
        writer.close()


async def test_call_of_a_client_that_left_is_not_answered(
    plugin: FakeExtender, caplog: pytest.LogCaptureFixture
) -> None:
    """Not even if what came of its body could be read."""
    body = json.dumps(FILTER).encode()
    async with served(plugin) as client:
        _, writer = await client.stream()
        writer.write(request("/filter", body + b" ")[:-1])
        await writer.drain()
        writer.transport.abort()

        assert (await client.call("/bind", BIND))["Error"] == ""

    assert f"body: the client disconnected after {len(body)} bytes." in caplog.text
    assert plugin.pods == []


async def test_what_is_not_http_is_refused(client: Client) -> None:
    reader, writer = await client.stream()
    writer.write(b"\x16\x03\x01 this is TLS\r\n\r\n")

    assert (await reader.read()).startswith(b"HTTP/1.1 400 ")
    writer.close()


async def test_connection_is_kept_for_many_calls(client: Client) -> None:
    reader, writer = await client.stream()
    body = json.dumps(FILTER).encode()
    for _ in range(3):
        writer.write(request("/filter", body))
        _, answer = await read_response(reader)
        assert answer["Error"] == ""
    writer.close()


async def test_malformed_call_keeps_the_connection(client: Client) -> None:
    reader, writer = await client.stream()
    for body, error in ((b"{", "input data was truncated."), (b"[]", "expected `object`")):
        writer.write(request("/filter", body))
        _, answer = await read_response(reader)
        assert error in answer["Error"]
    writer.close()


async def test_pipelined_calls_are_answered_in_order(client: Client) -> None:
    reader, writer = await client.stream()
    writer.write(b"".join(request("/bind", json.dumps({**BIND, "Node": n}).encode()) for n in "ab"))
    writer.write(request("/filter", json.dumps(FILTER).encode()))

    answers = [(await read_response(reader))[1] for _ in range(3)]

    assert [answer["Error"] for answer in answers] == ["No such node.", "No such node.", ""]
    writer.close()


async def test_binds_run_at_the_same_time(client: Client, plugin: FakeExtender) -> None:
    """Each waits for all the others."""
    waiting: list[BindArguments] = []
    all_there = asyncio.Event()

    async def bind(arguments: BindArguments) -> str:
        waiting.append(arguments)
        if len(waiting) == 30:
            all_there.set()
        await all_there.wait()
        return arguments.name

    plugin.on_bind = bind
    names = [f"pod-{number}" for number in range(30)]

    answers = await asyncio.gather(*(client.call("/bind", {**BIND, "PodName": n}) for n in names))

    assert [answer["Error"] for answer in answers] == names


async def test_filter_is_answered_while_a_bind_waits(client: Client, plugin: FakeExtender) -> None:
    release = asyncio.Event()

    async def bind(_: BindArguments) -> str:
        await release.wait()
        return ""

    plugin.on_bind = bind
    binding = asyncio.create_task(client.call("/bind", BIND))

    assert (await client.call("/filter", FILTER))["Error"] == ""
    release.set()
    assert await binding == {"Error": ""}


async def test_bind_that_takes_too_long_is_given_up(plugin: FakeExtender) -> None:
    ended: asyncio.Future[str] = asyncio.get_running_loop().create_future()

    async def bind(_: BindArguments) -> str:
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            ended.set_result("cancelled")
            raise
        return ""

    plugin.on_bind = bind
    async with served(plugin, Limits(bind_seconds=0.05)) as client:
        answer = await client.call("/bind", BIND)

        assert answer == {"Error": "Pod default/a was not bound within 0.05 s."}
        assert await ended == "cancelled"


async def test_bind_that_failed_for_a_pod_that_is_bound_is_none(
    client: Client, plugin: FakeExtender
) -> None:
    """kube-scheduler would take the reservations of a pod back that runs."""
    elsewhere = {**BIND, "Node": "node-2"}
    assert await client.call("/bind", elsewhere) == {"Error": "No such node."}

    plugin.bound.add("a")

    assert await client.call("/bind", elsewhere) == {"Error": ""}


async def test_bind_that_took_too_long_for_a_pod_that_is_bound_is_none(
    plugin: FakeExtender,
) -> None:
    async def bind(_: BindArguments) -> str:
        plugin.bound.add("a")
        await asyncio.Event().wait()
        return ""

    plugin.on_bind = bind
    async with served(plugin, Limits(bind_seconds=0.05)) as client:
        assert await client.call("/bind", BIND) == {"Error": ""}


async def test_filter_waits_for_the_lease_that_is_about_to_be_ours(
    client: Client, plugin: FakeExtender
) -> None:
    plugin.may_settle.clear()
    asked = asyncio.create_task(client.call("/filter", FILTER))
    assert (await client.call("/bind", BIND))["Error"] == ""
    assert not plugin.pods

    plugin.may_settle.set()

    assert (await asked)["Error"] == ""
    assert plugin.pods == [POD]


@pytest.mark.parametrize("fails", [True, False])
async def test_bind_that_is_slow_to_give_up_delays_no_answer(
    plugin: FakeExtender, caplog: pytest.LogCaptureFixture, fails: bool
) -> None:
    caplog.set_level(logging.WARNING)
    release = asyncio.Event()

    async def bind(_: BindArguments) -> str:
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            await release.wait()
            if fails:
                raise RuntimeError("a fault") from None
        return "Bound after all."

    plugin.on_bind = bind
    async with served(plugin, Limits(bind_seconds=0.05)) as client:
        assert "not bound within" in (await client.call("/bind", BIND))["Error"]
        release.set()
        assert (await client.call("/filter", FILTER))["Error"] == ""

    ended = "bind failed after its time limit" if fails else "Bound after all."
    assert ended in caplog.text


async def test_bind_that_was_cancelled_by_others_is_an_error(
    client: Client, plugin: FakeExtender
) -> None:
    async def bind(_: BindArguments) -> str:
        raise asyncio.CancelledError

    plugin.on_bind = bind

    assert await client.call("/bind", BIND) == {"Error": "Pod default/a was not bound: cancelled."}


async def test_bind_goes_on_when_its_client_leaves(client: Client, plugin: FakeExtender) -> None:
    arrived, release, bound = asyncio.Event(), asyncio.Event(), asyncio.Event()

    async def bind(_: BindArguments) -> str:
        arrived.set()
        await release.wait()
        bound.set()
        return ""

    plugin.on_bind = bind
    _, writer = await client.stream()
    writer.write(request("/bind", json.dumps(BIND).encode()))
    await arrived.wait()
    writer.transport.abort()
    assert (await client.call("/filter", FILTER))["Error"] == ""
    release.set()

    await bound.wait()


async def test_stop_finishes_what_is_under_way(plugin: FakeExtender) -> None:
    arrived, release = asyncio.Event(), asyncio.Event()

    async def bind(_: BindArguments) -> str:
        arrived.set()
        await release.wait()
        return "the answer"

    plugin.on_bind = bind
    async with AsyncExitStack() as server, AsyncExitStack() as sessions:
        bound = await server.enter_async_context(
            serving(ExtenderApp(cast(Extender, plugin)), LOOPBACK)
        )
        url = f"http://127.0.0.1:{bound.port}"
        session = await sessions.enter_async_context(aiohttp.ClientSession(url))
        binding = asyncio.create_task(Client(session, bound).call("/bind", BIND))
        await arrived.wait()
        stopping = asyncio.create_task(server.aclose())
        await until_refused(bound.port)
        assert not stopping.done()
        release.set()

        assert await binding == {"Error": "the answer"}
        await stopping


async def until_refused(port: int) -> None:
    """Wait until nobody listens."""
    while True:
        try:
            _, writer = await asyncio.open_connection("127.0.0.1", port)
        except ConnectionError:
            return
        writer.close()
        await asyncio.sleep(0.01)


async def test_stop_has_a_limit(plugin: FakeExtender) -> None:
    arrived, cancelled = asyncio.Event(), asyncio.Event()

    async def bind(_: BindArguments) -> str:
        arrived.set()
        try:
            await asyncio.Event().wait()
        finally:
            cancelled.set()
        return ""

    plugin.on_bind = bind
    async with served(plugin, Limits(stop_seconds=0)) as client:
        binding = asyncio.create_task(client.ask("POST", "/bind", json.dumps(BIND)))
        await arrived.wait()

    await cancelled.wait()
    with pytest.raises(aiohttp.ClientError):
        await binding


async def test_idle_connections_do_not_hold_up_a_stop(plugin: FakeExtender) -> None:
    async with served(plugin) as client:
        reader, writer = await client.stream()
        writer.write(request("/filter", b"{}"))
        await read_response(reader)

    assert await reader.read() == b""
    writer.close()


async def test_port_in_use_is_said(client: Client, plugin: FakeExtender) -> None:
    taken = Listening(host="127.0.0.1", port=client.bound.port, tls=None)
    with pytest.raises(CannotListenError, match=r"cannot listen on 127.0.0.1 port \d+: Address"):
        async with serving(ExtenderApp(cast(Extender, plugin)), taken):
            pass


async def test_ipv6_loopback_is_served(plugin: FakeExtender) -> None:
    async with serving(
        ExtenderApp(cast(Extender, plugin)), Listening(host="::1", port=0, tls=None)
    ) as bound:
        _, writer = await asyncio.open_connection("::1", bound.port)
        writer.close()
        assert bound.host == "::1"


# Mutual TLS


@pytest.fixture(scope="module")
def authority(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    return Authority(tmp_path_factory.mktemp("tls"))


@pytest.fixture(scope="module")
def tls_files(authority: Authority) -> TlsFiles:
    spec = CertificateSpec("server", "moorage-scheduler-plugin", hosts=("127.0.0.1",))
    certificate, key = authority.issue(spec)
    return TlsFiles(
        certificate=str(certificate), key=str(key), client_ca=str(authority.certificate_file)
    )


SCHEDULER = CertificateSpec("client", "system:kube-scheduler")


def client_context(
    authority: Authority, signer: Authority | None, shown: CertificateSpec = SCHEDULER
) -> ssl.SSLContext:
    """A client that trusts the server and shows a certificate of the signer's."""
    context = ssl.create_default_context(cafile=str(authority.certificate_file))
    if signer:
        context.load_cert_chain(*signer.issue(shown))
    return context


async def filter_over(context: ssl.SSLContext, tls: TlsFiles) -> object:
    listening = Listening(host="127.0.0.1", port=0, tls=tls)
    async with (
        serving(ExtenderApp(cast(Extender, FakeExtender())), listening) as bound,
        aiohttp.ClientSession(connector=aiohttp.TCPConnector(ssl=context)) as session,
        session.post(f"https://127.0.0.1:{bound.port}/filter", json=FILTER) as response,
    ):
        return await response.json()


async def test_client_with_a_certificate_is_answered(
    authority: Authority, tls_files: TlsFiles
) -> None:
    answer = await filter_over(client_context(authority, authority), tls_files)

    assert answer == {"NodeNames": ["node-1", "node-2"], "Error": ""}


async def test_client_without_a_certificate_is_not_heard(
    authority: Authority, tls_files: TlsFiles
) -> None:
    with pytest.raises((aiohttp.ClientError, ConnectionError, ssl.SSLError)):
        await filter_over(client_context(authority, None), tls_files)


async def test_client_with_a_foreign_certificate_is_not_heard(
    authority: Authority, tls_files: TlsFiles, tmp_path: Path
) -> None:
    with pytest.raises((aiohttp.ClientError, ConnectionError, ssl.SSLError)):
        await filter_over(client_context(authority, Authority(tmp_path)), tls_files)


async def answer_to(
    authority: Authority, tls: TlsFiles, shown: CertificateSpec, path: str = "/bind"
) -> tuple[int, str]:
    """What a client of the authority is answered."""
    context = client_context(authority, authority, shown)
    listening = Listening(host="127.0.0.1", port=0, tls=tls)
    async with (
        serving(ExtenderApp(cast(Extender, FakeExtender())), listening) as bound,
        aiohttp.ClientSession(connector=aiohttp.TCPConnector(ssl=context)) as session,
        session.post(f"https://127.0.0.1:{bound.port}{path}", json=CALLS[path]) as response,
    ):
        return response.status, await response.text()


@pytest.mark.parametrize("path", VERBS)
async def test_client_of_the_authority_that_is_not_named_is_refused(
    authority: Authority, tls_files: TlsFiles, path: str, caplog: pytest.LogCaptureFixture
) -> None:
    kubelet = CertificateSpec("kubelet", "system:node:node-a", "system:nodes", ("node-a",))

    why = (
        'Your certificate names "system:node:node-a" or "node-a": --client-names must have one of'
        " its names."
    )
    assert await answer_to(authority, tls_files, kubelet, path) == (403, why)
    assert any(why in message for message in caplog.messages)


async def test_client_is_known_by_an_alternative_name(
    authority: Authority, tls_files: TlsFiles
) -> None:
    tls = dataclasses.replace(tls_files, client_names=frozenset({"scheduler.example"}))
    shown = CertificateSpec("other", "somebody", hosts=("scheduler.example",))

    assert await answer_to(authority, tls, shown) == (200, '{"Error":""}')
    assert (await answer_to(authority, tls, SCHEDULER))[0] == 403


async def test_files_that_change_are_read_again(
    authority: Authority, tls_files: TlsFiles, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The authority of the clients too: whoever is not of it any more is not heard."""
    accepted = tmp_path / "accepted.crt"
    shutil.copy(tls_files.client_ca, accepted)
    own = dataclasses.replace(tls_files, client_ca=str(accepted))
    soon = functools.partial(follow_files, period_seconds=0.01)
    monkeypatch.setattr("scheduler_plugin.extender.http_server.follow_files", soon)
    stranger = Authority(tmp_path)
    refused = (aiohttp.ClientError, ConnectionError, ssl.SSLError)
    async with serving(
        ExtenderApp(cast(Extender, FakeExtender())), Listening(host="127.0.0.1", port=0, tls=own)
    ) as bound:
        url = f"https://127.0.0.1:{bound.port}/filter"
        with pytest.raises(refused):
            await status_over(client_context(authority, stranger), url)
        shutil.copy(stranger.certificate_file, accepted)
        async with asyncio.timeout(10):
            while True:
                with contextlib.suppress(*refused):
                    assert await status_over(client_context(authority, stranger), url) == 405
                    break
        with pytest.raises(refused):
            await status_over(client_context(authority, authority), url)


async def status_over(context: ssl.SSLContext, url: str) -> int:
    async with (
        aiohttp.ClientSession(connector=aiohttp.TCPConnector(ssl=context)) as session,
        session.get(url) as response,
    ):
        return response.status


async def test_plain_http_is_not_heard_where_tls_is_served(tls_files: TlsFiles) -> None:
    async with serving(
        ExtenderApp(cast(Extender, FakeExtender())),
        Listening(host="127.0.0.1", port=0, tls=tls_files),
    ) as bound:
        with socket.create_connection((bound.host, bound.port)) as plain:
            plain.setblocking(False)
            loop = asyncio.get_running_loop()
            await loop.sock_sendall(plain, request("/filter", b"{}"))
            assert b"HTTP" not in await loop.sock_recv(plain, 1000)


@pytest.mark.parametrize("broken", ["certificate", "key", "client_ca"])
@pytest.mark.parametrize("content", [None, "no PEM"])
async def test_unusable_certificates_are_said(
    plugin: FakeExtender, tls_files: TlsFiles, tmp_path: Path, broken: str, content: str | None
) -> None:
    path = tmp_path / "broken.pem"
    if content:
        path.write_text(content)
    given = {name: getattr(tls_files, name) for name in ("certificate", "key", "client_ca")}
    files = TlsFiles(**{**given, broken: str(path)})
    with pytest.raises(CannotListenError, match=r"broken\.pem.* cannot be used"):
        async with serving(
            ExtenderApp(cast(Extender, plugin)), Listening(host="127.0.0.1", port=0, tls=files)
        ):
            pass
