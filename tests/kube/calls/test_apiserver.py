"""Calls to the API server: what goes out, and what a failure becomes."""

from __future__ import annotations

import asyncio
from pathlib import Path
from socket import create_server

import pytest

from kube.calls.api import (
    ApiClient,
    ApiError,
    ConflictError,
    GoneError,
    InvalidError,
    NotFoundError,
    Preconditions,
    ServerFaultError,
    UnavailableError,
    WriteOptions,
    connect,
)
from kube.kinds import CONFIG_MAPS
from kube.resources import Resource
from tests.fakes.scripted_apiserver import (
    FakeScript,
    Reply,
    hangs,
    kubeconfig_for,
    lists,
    refuses,
    resets,
    says,
    says_text,
    streams,
)
from tests.kube.builders import an_object

A = CONFIG_MAPS.at("a", "ns")
BRIEF = WriteOptions(timeout_seconds=0.2)


async def test_call_carries_credentials_user_agent_and_json(
    client: ApiClient, fake: FakeScript
) -> None:
    fake.will(says(an_object()))

    answer = await client.merge_patch(A, {"data": {}}, preconditions=Preconditions("uid-a"))

    [seen] = fake.seen
    assert answer == an_object()
    assert (seen.method, seen.path) == ("PATCH", "/api/v1/namespaces/ns/configmaps/a")
    assert seen.headers["authorization"] == "Bearer secret"
    assert seen.headers["User-Agent"] == "moorage"
    assert seen.headers["Content-Type"] == "application/merge-patch+json"
    assert seen.body == {"data": {}, "metadata": {"uid": "uid-a"}}


async def test_each_verb_reaches_its_method(client: ApiClient, fake: FakeScript) -> None:
    fake.will(*[says({})] * 6)

    await client.get(A)
    await client.create(CONFIG_MAPS, an_object())
    await client.replace(A, an_object())
    await client.json_patch(A, [{"op": "remove", "path": "/data"}])
    await client.apply(A, an_object(), force=True, options=WriteOptions(field_manager="me"))
    await client.delete(A)

    assert [seen.method for seen in fake.seen] == [
        "GET",
        "POST",
        "PUT",
        "PATCH",
        "PATCH",
        "DELETE",
    ]
    assert fake.seen[3].body == [{"op": "remove", "path": "/data"}]
    assert fake.seen[4].query["force"] == "true"


async def test_selectors_and_tokens_survive_the_way_into_the_url(
    client: ApiClient, fake: FakeScript
) -> None:
    fake.will(lists(version=1, more="a+b/c==&x"), lists(version=1))

    await client.list(CONFIG_MAPS.select(label_selector="a in (b,c),d!=e%20"))

    assert fake.seen[0].query["labelSelector"] == "a in (b,c),d!=e%20"
    assert fake.seen[1].query["continue"] == "a+b/c==&x"


async def test_list_joins_its_pages(client: ApiClient, fake: FakeScript) -> None:
    fake.will(lists(an_object("a"), version=7, more="2"), lists(an_object("b"), version=7))

    found = await client.list(CONFIG_MAPS.select("ns"), page_size=1)

    assert found.items == (an_object("a"), an_object("b"))
    assert found.resource_version == 7


async def test_list_that_expires_halfway_starts_again(client: ApiClient, fake: FakeScript) -> None:
    fake.will(
        lists(an_object("a"), version=7, more="2"),
        refuses(410, "Expired"),
        lists(an_object("b"), version=9),
    )

    found = await client.list(CONFIG_MAPS.select("ns"))

    assert found.items == (an_object("b"),)


async def test_list_that_always_expires_is_an_error(client: ApiClient, fake: FakeScript) -> None:
    fake.will(*[refuses(410, "Expired")] * 3)

    with pytest.raises(GoneError):
        await client.list(CONFIG_MAPS.select("ns"))


@pytest.mark.parametrize(
    ("reply", "kind", "sentence"),
    [
        (refuses(404, "NotFound"), NotFoundError, "404 NotFound: refused"),
        (refuses(409, "Conflict"), ConflictError, "409 Conflict: refused"),
        (says_text("404 page not found\n", 404), NotFoundError, "404 : 404 page not found"),
        (says(["odd"], 400), InvalidError, "400 : HTTP 400"),
        (says_text("", 500), ServerFaultError, "500 : HTTP 500"),
    ],
)
async def test_refusals_become_errors(
    client: ApiClient, fake: FakeScript, reply: Reply, kind: type[ApiError], sentence: str
) -> None:
    fake.will(reply)

    with pytest.raises(ApiError) as caught:
        await client.get(A)

    assert type(caught.value) is kind
    assert str(caught.value).rstrip() == sentence


@pytest.mark.parametrize(
    "reply",
    [resets, hangs, says_text("garbage"), says([]), streams(b'{"met', then=resets)],
    ids=["reset", "silence", "garbage", "no object", "cut off"],
)
async def test_write_without_an_answer_may_have_happened(
    client: ApiClient, fake: FakeScript, reply: Reply
) -> None:
    fake.will(reply)

    with pytest.raises(UnavailableError) as caught:
        await client.create(CONFIG_MAPS, an_object(), options=BRIEF)

    assert caught.value.may_have_happened


@pytest.mark.parametrize("answers", [0, 1])
async def test_a_lost_call_says_whether_the_server_answered_others_meanwhile(
    client: ApiClient, fake: FakeScript, answers: int
) -> None:
    fake.will(says(an_object()), hangs, *[says(an_object())] * answers)
    await client.get(A)  # before it began

    lost = asyncio.create_task(client.create(CONFIG_MAPS, an_object(), options=BRIEF))
    await fake.has_seen(2)
    for _ in range(answers):
        await client.get(A)
    with pytest.raises(UnavailableError) as caught:
        await lost

    assert caught.value.answered_others is bool(answers)


async def test_write_that_reached_nobody_has_not_happened(tmp_path: Path) -> None:
    with create_server(("127.0.0.1", 0)) as unused:
        port = unused.getsockname()[1]

    async with connect(kubeconfig_for(tmp_path, port)) as client:
        with pytest.raises(UnavailableError) as caught:
            await client.create(CONFIG_MAPS, an_object())

    assert not caught.value.may_have_happened


async def test_overload_says_when_to_come_back(client: ApiClient, fake: FakeScript) -> None:
    fake.will(refuses(429, "TooManyRequests", Retry_After="3"))

    with pytest.raises(UnavailableError) as caught:
        await client.get(A)

    assert caught.value.retry_after_seconds == 3
    assert not caught.value.may_have_happened


@pytest.mark.parametrize("asked", ["3600", "inf", "Fri, 31 Dec 2100 23:59:59 GMT"])
async def test_no_server_is_waited_for_longer_than_a_minute(
    client: ApiClient, fake: FakeScript, asked: str
) -> None:
    fake.will(refuses(429, "TooManyRequests", Retry_After=asked))

    with pytest.raises(UnavailableError) as caught:
        await client.get(A)

    assert caught.value.retry_after_seconds == 60


async def test_list_that_is_no_list_is_an_error(client: ApiClient, fake: FakeScript) -> None:
    fake.will(says({"items": []}))

    with pytest.raises(UnavailableError):
        await client.list(CONFIG_MAPS.select())


@pytest.mark.parametrize(
    "reply",
    [refuses(404, "NotFound"), says_text("404 page not found", 404)],
    ids=["kind", "group"],
)
async def test_a_list_of_a_kind_without_a_definition_says_so(
    client: ApiClient, fake: FakeScript, reply: Reply
) -> None:
    fake.will(reply)

    with pytest.raises(NotFoundError) as raised:
        await client.list(CONFIG_MAPS.select("ns"))

    said = "the API server serves no configmaps of v1: install their definition"
    assert raised.value.message == said


async def test_a_kind_that_can_be_listed_is_served(client: ApiClient, fake: FakeScript) -> None:
    fake.will(lists(version=7))

    assert await client.serves(CONFIG_MAPS)
    assert len(fake.seen) == 1


async def test_a_kind_is_missing_only_from_a_server_that_is_ready(
    client: ApiClient, fake: FakeScript
) -> None:
    fake.will(refuses(404), says_text("ok"), refuses(404))

    assert not await client.serves(CONFIG_MAPS)
    assert [seen.path for seen in fake.seen][1] == "/readyz"


async def test_a_server_that_has_just_been_started_may_know_a_kind_later(
    client: ApiClient, fake: FakeScript
) -> None:
    """Of custom resources it says 404 until it has read their definitions."""
    fake.will(refuses(404), says_text("not yet", status=500))
    with pytest.raises(ServerFaultError):
        await client.serves(CONFIG_MAPS)

    fake.will(refuses(404), says_text("ok"), lists(version=7))
    assert await client.serves(CONFIG_MAPS)


async def test_who_may_not_ask_whether_a_server_is_ready_believes_what_it_lists(
    client: ApiClient, fake: FakeScript
) -> None:
    fake.will(refuses(404), refuses(403), refuses(404))

    assert not await client.serves(CONFIG_MAPS)


PODGROUPS = Resource("scheduling.k8s.io", "", "podgroups")


async def test_a_resource_without_a_version_is_found_in_the_one_that_serves_it(
    client: ApiClient, fake: FakeScript
) -> None:
    """Of Kubernetes 1.36 and 1.37 one serves other resources where the other has PodGroups."""
    versions = [{"version": version} for version in ("v1", "v1beta1", "v1alpha2")]
    others, groups = [{"name": "priorityclasses"}], [{"name": "podgroups"}]
    answers = [says({"resources": others}), refuses(404), says({"resources": groups})]
    fake.will(says({"versions": versions}), *answers)

    found = await client.in_served_version(PODGROUPS)

    assert found == Resource("scheduling.k8s.io", "v1alpha2", "podgroups")
    assert [seen.path for seen in fake.seen] == [
        "/apis/scheduling.k8s.io",
        "/apis/scheduling.k8s.io/v1",
        "/apis/scheduling.k8s.io/v1beta1",
        "/apis/scheduling.k8s.io/v1alpha2",
    ]


@pytest.mark.parametrize(
    "answers",
    [
        [refuses(404)],
        [says({"versions": [{"version": "v1"}]}), says({"resources": [{"name": "others"}]})],
    ],
    ids=["group", "resource"],
)
async def test_a_resource_that_no_version_serves_is_in_none(
    client: ApiClient, fake: FakeScript, answers: list[Reply]
) -> None:
    fake.will(*answers)

    assert await client.in_served_version(PODGROUPS) is None
