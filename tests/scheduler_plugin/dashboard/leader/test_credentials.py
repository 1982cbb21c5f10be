"""The Secret: filled by the elected plugin, anew in time, and by no other process."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime, timedelta

import pytest

from kube.live_tls import LiveTls
from scheduler_plugin.dashboard.leader import apiserver_credentials, credentials
from scheduler_plugin.dashboard.leader.apiserver_credentials import (
    CredentialKeeper,
    read_client_credential,
)
from scheduler_plugin.dashboard.leader.credentials import (
    certificates_in,
    is_due,
    new_certificates,
    secret_data,
)
from tests.fakes.apiserver import Fault
from tests.fakes.fence import FakeFence
from tests.fakes.leader_server import SECRET, FakeLeaderServer

NOW = datetime(2026, 11, 21, 12, tzinfo=UTC)


def data_of(now: datetime) -> dict[str, str]:
    return dict(secret_data(new_certificates(now)))


async def looked(server: FakeLeaderServer, fence: FakeFence) -> None:
    """What a keeper does within a moment."""
    keeper = CredentialKeeper(server.client, SECRET, LiveTls(asks_clients=True), fence)
    running = asyncio.create_task(keeper.run())
    await asyncio.sleep(0.1)
    running.cancel()
    await asyncio.wait([running])


def test_what_is_stored_is_read_back() -> None:
    made = new_certificates(NOW)

    assert certificates_in({"data": secret_data(made)}) == made


@pytest.mark.parametrize("broken", [{}, {"ca.crt": "?"}, {"data": None}])
def test_a_secret_that_lacks_a_part_has_none(broken: dict[str, str]) -> None:
    whole = data_of(NOW)
    del whole["client.key"]

    assert certificates_in({"data": {**whole, **broken}}) is None
    assert certificates_in({}) is None


@pytest.mark.parametrize(("days", "due"), [(0, False), (59, False), (61, True), (-1, True)])
def test_certificates_are_made_anew_after_two_thirds_of_their_life(days: int, due: bool) -> None:
    assert timedelta(days=90) == credentials.LIFE
    assert is_due(new_certificates(NOW), NOW + timedelta(days=days)) is due


async def test_the_elected_plugin_fills_an_empty_secret_once() -> None:
    server = FakeLeaderServer()
    await looked(server, FakeFence())
    made = dict(server.data)
    await looked(server, FakeFence())

    assert certificates_in({"data": made}) is not None
    assert server.data == made


async def test_a_plugin_that_is_not_elected_writes_nothing() -> None:
    server = FakeLeaderServer()
    await looked(server, FakeFence("another one leads"))

    assert server.data == {}


@pytest.mark.parametrize("kind", ["old", "damaged", "mixed"])
async def test_what_is_of_no_use_is_replaced_as_a_whole(kind: str) -> None:
    now = datetime.now(UTC)
    data = data_of(now - timedelta(days=80) if kind == "old" else now)
    if kind == "damaged":
        data["client.crt"] = data_of(now)["client.key"]
    if kind == "mixed":
        data["tls.key"] = data_of(now)["tls.key"]
    server = FakeLeaderServer(data)
    await looked(server, FakeFence())

    found = certificates_in({"data": server.data})
    assert found is not None
    assert not is_due(found, now)
    assert not set(data.values()) & set(server.data.values())


async def test_a_write_that_was_overtaken_changes_nothing(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(apiserver_credentials, "FIRST_SECONDS", 0.01)
    server = FakeLeaderServer()
    server.will(*[None, Fault.OUTRUN] * 50)
    await looked(server, FakeFence())

    assert server.data == {}


async def test_the_dashboard_reads_its_own_part() -> None:
    server = FakeLeaderServer()
    assert await read_client_credential(server.client, SECRET) is None
    server.data = data_of(NOW)
    found = await read_client_credential(server.client, SECRET)
    made = certificates_in({"data": server.data})

    assert found is not None
    assert made is not None
    assert (found.certificate, found.key) == (made.client, made.client_key)
    assert found.client_ca == made.authority
