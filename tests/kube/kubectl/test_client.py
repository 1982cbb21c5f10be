"""Reads through kubectl: the same answers and errors as those of a client of our own."""

from __future__ import annotations

import asyncio
import time
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web

from kube.calls.api import (
    ApiError,
    ForbiddenError,
    NotFoundError,
    UnauthorizedError,
    UnavailableError,
)
from kube.kinds import CONFIG_MAPS, PODS
from kube.kubectl import client as client_module
from kube.kubectl_client import Choice, KubectlClient, finished, started
from tests.fakes.scripted_apiserver import (
    FakeScript,
    hangs,
    kubeconfig_for,
    lists,
    refuses,
    resets,
    says,
    says_text,
)
from tests.kube.builders import an_object
from tests.kube.kubectl.conftest import asked

NOBODY_LISTENS = 1
"""A port that no test uses."""


async def test_an_object_is_read_under_its_name_and_nothing_is_written(
    client: KubectlClient, fake: FakeScript
) -> None:
    fake.will(says(an_object()))

    assert await asked(client.get(CONFIG_MAPS.at("a", "ns"))) == an_object()
    [seen] = fake.seen
    assert (seen.method, seen.path, seen.body) == (
        "GET",
        "/api/v1/namespaces/ns/configmaps/a",
        None,
    )
    assert seen.headers["User-Agent"] == "moorage"
    assert seen.headers["Host"] == "localhost"


@pytest.mark.parametrize("name", ["a b", "ä", "50%", "a?b#c", "exec/../x", "a\rHost: b"])
async def test_odd_names_stay_one_part_of_the_path(
    name: str, client: KubectlClient, fake: FakeScript
) -> None:
    fake.will(says({}))

    await asked(client.get(PODS.at(name, f"pods-{name}")))

    assert [seen.path for seen in fake.seen] == [f"/api/v1/namespaces/pods-{name}/pods/{name}"]


async def test_what_kubectl_refuses_by_itself_is_no_right_that_is_missing(
    client: KubectlClient, fake: FakeScript
) -> None:
    with pytest.raises(UnavailableError, match=r"pods/pod%2Fa: kubectl refuses .*: Forbidden"):
        await asked(client.get(PODS.at("pod/a", "ns")))

    assert fake.seen == []


async def test_selectors_arrive_as_they_are(client: KubectlClient, fake: FakeScript) -> None:
    fake.will(lists(version=1))
    labels = "team in (vision, ä&b),a!=b c"

    await asked(client.list(PODS.select("ns", label_selector=labels)))

    assert fake.seen[0].query == {"labelSelector": labels, "limit": "500"}


async def test_pages_are_one_list(client: KubectlClient, fake: FakeScript) -> None:
    fake.will(lists(an_object("a"), version=7, more="t"), lists(an_object("b"), version=7))

    page = await asked(client.list(CONFIG_MAPS.select()))

    assert [obj["metadata"]["name"] for obj in page.items] == ["a", "b"]
    assert [seen.query.get("continue") for seen in fake.seen] == [None, "t"]


async def test_a_list_that_is_gone_halfway_begins_again(
    client: KubectlClient, fake: FakeScript
) -> None:
    fake.will(lists(an_object("old"), version=7, more="t"), refuses(410, "Expired"))
    fake.will(lists(an_object("new"), version=9))

    page = await asked(client.list(CONFIG_MAPS.select()))

    assert [obj["metadata"]["name"] for obj in page.items] == ["new"]


@pytest.mark.parametrize(
    ("status", "kind"),
    [(401, UnauthorizedError), (403, ForbiddenError), (404, NotFoundError)],
)
async def test_a_refusal_is_the_error_that_it_is_without_kubectl(
    status: int, kind: type[ApiError], client: KubectlClient, fake: FakeScript
) -> None:
    fake.will(refuses(status, "Reason"))

    with pytest.raises(kind, match=f"{status} Reason: refused"):
        await asked(client.get(CONFIG_MAPS.at("a", "ns")))


async def test_a_kind_that_is_not_served_is_said(client: KubectlClient, fake: FakeScript) -> None:
    fake.will(says_text("404 page not found", 404))

    with pytest.raises(NotFoundError, match="serves no configmaps of v1"):
        await asked(client.list(CONFIG_MAPS.select()))


async def test_a_large_answer_in_chunks_is_whole(client: KubectlClient, fake: FakeScript) -> None:
    async def reply(request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse(headers={"Content-Type": "application/json"})
        await response.prepare(request)
        for part in (b'{"data": "', *[b"x" * 100_000] * 10, b'"}'):
            await response.write(part)
        await response.write_eof()
        return response

    fake.will(reply)

    found = await asked(client.get(CONFIG_MAPS.at("a", "ns")))

    assert len(found["data"]) == 1_000_000


async def test_version_and_clock_are_the_servers(client: KubectlClient, fake: FakeScript) -> None:
    fake.will(says({"gitVersion": "v1.36.3"}, Date="Sat, 21 Nov 2026 00:00:00 GMT"))

    server = await asked(client.server())

    assert (server.git_version, server.time.isoformat()) == (
        "v1.36.3",
        "2026-11-21T00:00:00+00:00",
    )


@pytest.mark.parametrize(
    ("emulated", "release"),
    [("", "v1.37.2"), ("37", "v1.37.2"), ("36", "v1.37.2 emulating 1.36")],
)
async def test_a_server_that_emulates_an_earlier_version_has_another_release(
    emulated: str, release: str, client: KubectlClient, fake: FakeScript
) -> None:
    fields = {"emulationMajor": "1", "emulationMinor": emulated} if emulated else {}
    fake.will(says({"gitVersion": "v1.37.2", **fields}, Date="Sat, 21 Nov 2026 00:00:00 GMT"))

    assert (await asked(client.server())).release == release


async def test_a_server_that_answers_too_late_is_unavailable(
    client: KubectlClient, fake: FakeScript
) -> None:
    fake.will(says({}), hangs)
    await asked(client.get(CONFIG_MAPS.at("a", "ns")))

    with pytest.raises(UnavailableError, match="GET /api/v1/namespaces/ns/configmaps/a: no answer"):
        await asked(client.get(CONFIG_MAPS.at("a", "ns"), timeout_seconds=0.2))


async def seconds_until_given_up(client: KubectlClient) -> float:
    """With a request that may take 0.1 s, before a server that is silent."""
    began = time.monotonic()
    with pytest.raises(UnavailableError, match="no answer in time"):
        await asked(client.get(CONFIG_MAPS.at("a", "ns"), timeout_seconds=0.1))
    return time.monotonic() - began


PLUGIN = {"exec": {"apiVersion": "client.authentication.k8s.io/v1", "command": "log-in"}}
NONE: dict[str, Any] = {"token": "secret"}


@pytest.mark.parametrize(
    ("user", "mode", "waits"),
    [
        (NONE, "", False),
        (NONE, "asks", True),
        (PLUGIN, "", True),
        ({"auth-provider": {"name": "oidc"}}, "", True),
    ],
)
async def test_only_a_user_who_may_have_to_log_in_is_waited_for(
    user: dict[str, Any],
    mode: str,
    waits: bool,
    on_path: Path,
    fake: FakeScript,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("FAKE_KUBECTL", mode)
    monkeypatch.setattr(client_module, "LOGIN_SECONDS", 2.0)
    fake.will(hangs)
    port = int(fake.kubeconfig.read_text().split("127.0.0.1:")[1].split()[0])
    choice = Choice(kubeconfig_for(tmp_path, port, user))

    with started(choice) as kubectl:
        assert kubectl
        assert await asyncio.to_thread(kubectl.listens)
        seconds = await seconds_until_given_up(KubectlClient(kubectl, choice))

    assert (seconds >= 2.0) is waits


@pytest.mark.parametrize("status", [403, 404, 500])
async def test_a_server_that_refused_has_answered(
    status: int, client: KubectlClient, fake: FakeScript, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its user needs not log in any more."""
    monkeypatch.setattr(client_module, "LOGIN_SECONDS", 2.0)
    text = fake.kubeconfig.read_text()
    fake.kubeconfig.write_text(text.replace("token: secret", "exec: {command: log-in}"))
    fake.will(refuses(status, "Reason"), hangs)
    with pytest.raises(ApiError):
        await asked(client.get(CONFIG_MAPS.at("a", "ns")))

    assert await seconds_until_given_up(client) < 2.0


@pytest.mark.parametrize("reply", [resets, says_text("no JSON")])
async def test_an_answer_that_is_none_is_unavailable(
    reply: object, client: KubectlClient, fake: FakeScript
) -> None:
    fake.script.append(reply)  # type: ignore[arg-type]  # Two of them, which are replies.

    with pytest.raises(UnavailableError):
        await asked(client.get(CONFIG_MAPS.at("a", "ns")))


def asked_alone(choice: Choice) -> object:
    """Of a cluster that nothing serves."""
    with started(choice) as kubectl:
        assert kubectl
        assert kubectl.listens()
        return finished(KubectlClient(kubectl, choice).get(CONFIG_MAPS.at("a", "ns")))


def test_a_server_that_is_away_is_kubectls_sentence(
    on_path: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    choice = Choice(kubeconfig_for(tmp_path, NOBODY_LISTENS))

    with pytest.raises(UnavailableError) as caught:
        asked_alone(choice)

    where = "GET /api/v1/namespaces/ns/configmaps/a"
    assert str(caught.value) == f"{where}: dial tcp 127.0.0.1: connect: connection refused"
    assert capsys.readouterr().err == ""


def test_a_kubectl_that_dies_is_unavailable(
    on_path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FAKE_KUBECTL", "dies")
    kubeconfig = kubeconfig_for(tmp_path, NOBODY_LISTENS)

    with pytest.raises(UnavailableError):
        asked_alone(Choice(kubeconfig))


def test_a_coroutine_that_waits_for_something_else_is_refused() -> None:
    with pytest.raises(RuntimeError, match="awaits something other"):
        finished(asyncio.sleep(0))
