"""The keeper of the webhook's certificates, where calls fail, are lost, or somebody is faster.

With a true API server it is told in tests/e2e/webhook.
"""

from __future__ import annotations

import asyncio
import logging
from base64 import b64decode
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kube.backoff import Backoff
from kube.calls.api import ApiClient, UnavailableError
from kube.calls.apiserver_reads import Page
from kube.kinds import CONFIG_MAPS, SECRETS
from kube.live_tls import TlsCredential
from tests.fakes.apiserver import FakeApiServer, Fault, Happening
from webhook.certificates import apiserver
from webhook.certificates.apiserver import KINDS, CertificateController
from webhook.certificates.authority import is_signed_by, read_certificates
from webhook.certificates.rotation import CaState, OwnCa

NAME = "moorage-webhook"
LIFE = timedelta(seconds=20)
"""So that authorities are trusted everywhere, it is taken, after 20 ms."""

OWN = OwnCa("moorage", "webhook-certificate", NAME, frozenset({"webhook.test"}), LIFE)
SECRET = SECRETS.at(OWN.secret, OWN.namespace)
PUBLISHED = CONFIG_MAPS.at(f"{OWN.secret}-ca", OWN.namespace)
REGISTRATIONS = tuple(kind.at(NAME) for kind in KINDS)
SECONDS = 8.0


@dataclass
class FakeListener:
    """What the webhook shows."""

    shown: list[TlsCredential] = field(default_factory=list)

    def show(self, credential: TlsCredential) -> None:
        self.shown.append(credential)


@pytest.fixture(autouse=True)
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(apiserver, "PAUSE_SECONDS", 0.001)
    monkeypatch.setattr(apiserver, "BACKOFF", Backoff(first_seconds=0.001, cap_seconds=0.002))


class Unwatched(ApiClient):
    """A client whose lists and watches all fail."""

    def pages(self, *_: object, **__: object) -> AsyncIterator[Page]:
        raise UnavailableError("no lists and no watches here")


def a_server(*happenings: Happening) -> FakeApiServer:
    """Both registrations are there, and no Secret."""
    server = FakeApiServer()
    server.will(*happenings)
    for kind in KINDS:
        webhooks = [{"name": f"{n}.moorage.dev", "clientConfig": {}} for n in range(2)]
        server.put(kind, {"metadata": {"name": NAME}, "webhooks": webhooks})
    return server


def a_controller(server: FakeApiServer, listener: FakeListener) -> CertificateController:
    client = Unwatched(server.client.transport)
    return CertificateController(client, OWN, listener)  # type: ignore[arg-type]  # fake


@asynccontextmanager
async def running(controller: CertificateController) -> AsyncIterator[asyncio.Task[Any]]:
    task = asyncio.create_task(controller.run())
    try:
        yield task
    finally:
        task.cancel()
        with suppress(asyncio.CancelledError, BaseExceptionGroup):
            await task


async def until(is_so: Callable[[], bool]) -> None:
    async with asyncio.timeout(SECONDS):
        while not is_so():  # noqa: ASYNC110  What is waited for is a state, which tells nobody.
            await asyncio.sleep(0.002)


def data(server: FakeApiServer) -> dict[str, bytes]:
    stored = server.objects.get(str(SECRET), {}).get("data", {})
    return {name: b64decode(value) for name, value in stored.items()}


def bundles(server: FakeApiServer) -> Iterator[bytes]:
    for path in REGISTRATIONS:
        for entry in server.get(path)["webhooks"]:
            yield b64decode(entry["clientConfig"].get("caBundle") or "")


def is_trusted(server: FakeApiServer, shown: TlsCredential) -> bool:
    """Whether every API server would take the certificate."""
    (certificate,) = read_certificates(shown.certificate)
    return all(
        any(is_signed_by(certificate, one) for one in read_certificates(found))
        for found in bundles(server)
    )


def is_in_order(server: FakeApiServer, *listeners: FakeListener) -> bool:
    certificate = data(server).get("tls.crt")
    return all(
        listener.shown[-1].certificate == certificate and is_trusted(server, listener.shown[-1])
        for listener in listeners
    )


async def state(server: FakeApiServer) -> FakeListener:
    """Run keepers, one after the other, until no more is to be killed and all is in order."""
    while True:
        listener = FakeListener()
        async with running(a_controller(server, listener)) as task:
            await until(lambda: task.done() or is_in_order(server, listener))  # noqa: B023  In this round.
            if not task.done():
                return listener


async def test_it_is_not_ready_before_there_is_a_certificate() -> None:
    server, listener = a_server(*[Fault.LOST] * 5), FakeListener()
    controller = a_controller(server, listener)

    assert controller.why_not_ready() == "There is no certificate yet."
    assert not is_trusted(server, listener.shown[0])
    async with running(controller):
        await until(lambda: is_in_order(server, listener))
    assert controller.why_not_ready() == ""


async def test_what_is_refused_is_logged_and_tried_again(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.WARNING)
    server, listener = a_server(*[Fault.FORBIDDEN] * 7), FakeListener()

    async with running(a_controller(server, listener)):
        await until(lambda: is_in_order(server, listener))

    logged = [r.getMessage() for r in caplog.records if "failed" in r.getMessage()]
    assert len(logged) == 7
    assert {line.partition("error=")[2] for line in logged} == {"403 Forbidden: no right"}


@pytest.mark.parametrize("fault", Fault)
@pytest.mark.parametrize("call", range(12))
async def test_a_fault_in_any_call_is_got_over(fault: Fault, call: int) -> None:
    server = a_server(*[None] * call, fault)

    listener = await state(server)

    assert not server.happenings, "the call was made"
    assert is_in_order(server, listener)
    assert len(CaState.of(data(server)).trusted) == 1, "nothing was made twice"


@given(faults=st.lists(st.sampled_from([None, *Fault]), max_size=40))
@settings(max_examples=15)
def test_any_row_of_faults_is_got_over(faults: list[Fault | None]) -> None:
    async def told() -> None:
        server = a_server(*faults)
        listener = await state(server)
        assert is_in_order(server, listener)
        assert len(CaState.of(data(server)).trusted) == 1

    asyncio.run(told())


async def test_nothing_is_served_that_is_not_trusted_by_then() -> None:
    """Nor before: what was shown to begin with is for the probes, and nobody trusts it."""
    server = a_server(*[Fault.OUTRUN, Fault.UNANSWERED, None] * 6)
    was_trusted: list[bool] = []

    class Watched(FakeListener):
        def show(self, credential: TlsCredential) -> None:
            super().show(credential)
            was_trusted.append(is_trusted(server, credential))

    listener = Watched()
    async with running(a_controller(server, listener)):
        await until(lambda: is_in_order(server, listener))

    assert was_trusted == [False, True]


async def test_two_that_start_together_end_with_one_certificate() -> None:
    server, listeners = a_server(), (FakeListener(), FakeListener())

    async with (
        running(a_controller(server, listeners[0])),
        running(a_controller(server, listeners[1])),
    ):
        await until(lambda: is_in_order(server, *listeners))

    assert len(CaState.of(data(server)).trusted) == 1


async def test_a_lost_secret_is_made_anew_while_the_old_certificate_is_trusted() -> None:
    server, listener = a_server(), FakeListener()

    async with running(a_controller(server, listener)):
        await until(lambda: is_in_order(server, listener))
        before = listener.shown[-1]
        server.remove(SECRET)
        await until(lambda: bool(data(server)) and is_in_order(server, listener))

    old = read_certificates(before.certificate)
    assert old
    assert listener.shown[-1] != before
    for found in bundles(server):
        assert len(read_certificates(found)) == 2, "the old authority is trusted until it expires"


async def test_whom_to_trust_is_said_to_those_who_may_not_read_the_keys() -> None:
    """Prometheus, say; a ConfigMap that nobody made is not missed."""
    server, listener = a_server(), FakeListener()
    metadata = {"name": PUBLISHED.name, "namespace": PUBLISHED.namespace}
    server.put(CONFIG_MAPS, {"metadata": metadata})

    async with running(a_controller(server, listener)):
        await until(lambda: is_in_order(server, listener) and published(server) != "")
        first = published(server)
        server.remove(SECRET)
        await until(lambda: published(server) != first and is_in_order(server, listener))

    assert published(server).encode() == data(server)["ca.crt"]
    assert first in published(server), "replicas show what the old one signed until they hear of it"


def published(server: FakeApiServer) -> str:
    return str(server.get(PUBLISHED).get("data", {}).get("ca.crt", ""))


async def test_a_lost_right_to_tell_others_stops_no_certificate() -> None:
    """As after a rollback of the roles alone."""
    server, listener = a_server(), FakeListener()
    refused: list[str] = []

    async def forbids(path: str) -> Happening:
        if path != str(PUBLISHED):
            return None
        refused.append(path)
        return Fault.FORBIDDEN

    server.next_happening = forbids
    async with running(a_controller(server, listener)):
        await until(lambda: bool(refused) and is_in_order(server, listener))
        server.remove(SECRET)
        before = listener.shown[-1]
        await until(lambda: bool(data(server)) and is_in_order(server, listener))

    assert listener.shown[-1] != before
