"""A store that follows an API server which fails in every way it can."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from socket import create_server

import pytest
from aiohttp import web

from kube.backoff import Backoff
from kube.calls.api import ApiClient, UnavailableError, connect
from kube.kinds import CONFIG_MAPS
from kube.objects import ObjectKey
from kube.stores.api import Added, Change, Deleted, Modified, Store, WatchSettings
from tests.fakes.scripted_apiserver import (
    FakeScript,
    Reply,
    bookmark,
    error_event,
    event,
    hangs,
    kubeconfig_for,
    lists,
    refuses,
    resets,
    says,
    says_text,
    scripted,
    streams,
)
from tests.kube.builders import View, a_view, an_object, project

A = ObjectKey("ns", "a")
QUICK = WatchSettings(
    backoff=Backoff(first_seconds=0.01, cap_seconds=0.02), idle_seconds=5, uniform=lambda: 0.5
)


def a_store(client: ApiClient, settings: WatchSettings = QUICK) -> Store[View]:
    return Store(
        client,
        CONFIG_MAPS.select("ns"),
        project,
        indexes={"data": lambda view: [view.data]},
        settings=settings,
    )


@asynccontextmanager
async def running(store: Store[View]) -> AsyncIterator[Store[View]]:
    task = asyncio.create_task(store.run())
    try:
        yield store
    finally:
        task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await task


async def eventually(condition: Callable[[], bool]) -> None:
    for _ in range(500):
        if condition():
            return
        await asyncio.sleep(0.01)
    raise AssertionError("it never came true")


async def reaches(store: Store[View], version: int) -> None:
    assert await store.at_least(version, 5), store.stats


async def test_store_lists_in_pages_and_watches_from_there(
    client: ApiClient, fake: FakeScript
) -> None:
    fake.will(
        lists(an_object("a", 1), version=5, more="next"),
        lists(an_object("b", 2, "x"), version=5),
        streams(event("MODIFIED", an_object("a", 6, "y")), then=hangs),
    )

    async with running(a_store(client)) as store:
        await store.synced.wait()
        await reaches(store, 6)

        assert list(store) == [a_view("a", "y"), a_view("b", "x")]
        assert store.get("a", "ns") == a_view("a", "y")
        assert store.by_index("data", "y") == (a_view("a", "y"),)
        assert len(store) == 2

    assert fake.seen[0].query == {"limit": "500"}
    assert fake.seen[1].query["continue"] == "next"
    assert fake.seen[2].query["resourceVersion"] == "5"
    assert fake.seen[2].query["timeoutSeconds"] == "450"


async def test_watch_that_ends_is_resumed_from_the_last_version(
    client: ApiClient, fake: FakeScript
) -> None:
    fake.will(
        lists(version=5),
        streams(event("ADDED", an_object("a", 6))),
        streams(bookmark(9)),
        streams(event("DELETED", an_object("a", 10)), then=hangs),
    )

    async with running(a_store(client)) as store:
        await reaches(store, 10)

    assert [seen.query["resourceVersion"] for seen in fake.seen[1:]] == ["5", "6", "9"]
    assert len(store) == 0


@pytest.mark.parametrize(
    "expires",
    [streams(error_event(410, "Expired")), refuses(410, "Expired")],
    ids=["in the stream", "as the answer"],
)
async def test_expired_watch_is_listed_again_and_only_the_difference_is_told(
    client: ApiClient, fake: FakeScript, expires: Reply
) -> None:
    fake.will(
        lists(an_object("a", 1), an_object("b", 2), an_object("c", 3), version=5),
        expires,
        lists(an_object("b", 2), an_object("c", 8, "x"), an_object("d", 7), version=9),
    )
    store = a_store(client)
    changes: list[Change[View]] = []

    async with running(store):
        await store.synced.wait()
        store.subscribe(changes.append)
        await reaches(store, 9)

    keys = {name: ObjectKey("ns", name) for name in "abcd"}
    assert changes == [
        *[Added(keys[name], a_view(name)) for name in "abc"],
        Modified(keys["c"], a_view("c"), a_view("c", "x")),
        Added(keys["d"], a_view("d")),
        Deleted(keys["a"], a_view("a")),
    ]


async def test_list_that_expires_between_pages_starts_again(
    client: ApiClient, fake: FakeScript
) -> None:
    fake.will(
        lists(an_object("a", 1), version=5, more="next"),
        refuses(410, "Expired"),
        lists(an_object("b", 7), version=8),
    )

    async with running(a_store(client)) as store:
        await store.synced.wait()

        assert list(store) == [a_view("b")]


@pytest.mark.parametrize(
    "fault",
    [
        resets,
        streams(event("ADDED", an_object("a", 6, "x"))[:40]),
        streams(event("ADDED", an_object("a", 6, "x"))[:40], then=resets),
        streams(b"garbage\n"),
        streams(error_event(500, "InternalError")),
        refuses(500),
        refuses(503),
        refuses(403, "Forbidden"),
        says_text("garbage"),
        says({}),
    ],
    ids=[
        "reset",
        "cut off",
        "cut off and reset",
        "garbage line",
        "error event",
        "500",
        "503",
        "403",
        "garbage",
        "no event",
    ],
)
async def test_watch_survives_a_fault_and_loses_nothing(
    client: ApiClient, fake: FakeScript, fault: Reply
) -> None:
    whole = event("ADDED", an_object("a", 6, "x"))
    fake.will(lists(version=5), fault, streams(whole, then=hangs))

    async with running(a_store(client)) as store:
        await reaches(store, 6)

    assert list(store) == [a_view("a", "x")]
    assert [seen.query.get("resourceVersion") for seen in fake.seen] == [None, "5", "5"]
    assert store.stats.failures_in_a_row == 0


async def test_half_open_connection_is_noticed_and_replaced(
    client: ApiClient, fake: FakeScript
) -> None:
    fake.will(
        lists(version=5),
        streams(bookmark(6), then=hangs),
        streams(event("ADDED", an_object("a", 7)), then=hangs),
    )

    async with running(
        a_store(client, WatchSettings(idle_seconds=0.2, backoff=QUICK.backoff))
    ) as s:
        await reaches(s, 7)

    assert fake.seen[2].query["resourceVersion"] == "6"


async def test_event_that_can_never_be_read_leads_to_a_new_list(
    client: ApiClient, fake: FakeScript
) -> None:
    garbage = streams(b"garbage\n")
    fake.will(lists(version=5), *[garbage] * 5, lists(an_object("a", 6), version=7))
    fake.will(*[garbage] * 4, streams(bookmark(8), then=hangs))

    async with running(a_store(client)) as store:
        await reaches(store, 8)

    assert list(store) == [a_view("a")]
    assert store.stats.lists == 2
    assert [seen.query.get("resourceVersion") for seen in fake.seen[6:]] == [None, *["7"] * 5]


async def test_server_that_answers_every_watch_with_410_is_not_listed_in_a_tight_loop(
    client: ApiClient, fake: FakeScript
) -> None:
    for version in range(5, 50):
        fake.will(lists(version=version), refuses(410, "Expired"))
    slow = WatchSettings(backoff=Backoff(first_seconds=0.05, cap_seconds=9), uniform=lambda: 1.0)

    async with running(a_store(client, slow)) as store:
        await asyncio.sleep(0.5)

    assert 2 <= store.stats.lists <= 5


async def test_overloaded_server_is_left_alone_for_as_long_as_it_asks(
    client: ApiClient, fake: FakeScript
) -> None:
    fake.will(refuses(429, "TooManyRequests", Retry_After="1"), lists(version=5))
    began = asyncio.get_running_loop().time()

    async with running(a_store(client)) as store:
        await store.synced.wait()

    assert asyncio.get_running_loop().time() - began >= 1


@pytest.mark.parametrize(
    ("refusal", "cause", "forbidden"),
    [
        (refuses(401, "Unauthorized"), "credentials", False),
        (refuses(403, "Forbidden"), "refused", True),
        (refuses(500, "InternalError"), "server-fault", False),
        (refuses(503, "ServiceUnavailable"), "unavailable", False),
    ],
)
async def test_why_nothing_is_heard_is_told(
    client: ApiClient, fake: FakeScript, refusal: Reply, cause: str, forbidden: bool
) -> None:
    fake.will(refusal)

    async with running(a_store(client)) as store:
        await fake.has_seen(2)
        assert (store.stats.last_cause, store.stats.forbidden) == (cause, forbidden)
        assert store.stats.failures_in_a_row == 1


async def test_huge_objects_arrive_whole(client: ApiClient, fake: FakeScript) -> None:
    huge = "x" * 6_000_000
    fake.will(
        lists(an_object("a", 1, huge), version=5),
        streams(event("ADDED", an_object("b", 6, huge)), then=hangs),
    )

    async with running(a_store(client)) as store:
        await reaches(store, 6)

        assert store.get("a", "ns") == a_view("a", huge)
        assert store.get("b", "ns") == a_view("b", huge)


async def test_server_that_is_away_at_the_start_is_waited_for(tmp_path: Path) -> None:
    with create_server(("127.0.0.1", 0)) as unused:
        port = unused.getsockname()[1]

    async with connect(kubeconfig_for(tmp_path, port)) as client, running(a_store(client)) as store:
        await asyncio.sleep(0.1)
        assert not store.synced.is_set()
        assert store.stats.failures_in_a_row > 0
        async with scripted(tmp_path, port) as fake:
            fake.will(lists(an_object(), version=5))
            async with asyncio.timeout(5):
                await store.synced.wait()

    assert len(store) == 1


async def test_cancelled_store_hangs_up(client: ApiClient, fake: FakeScript) -> None:
    fake.will(lists(version=5), streams(bookmark(6), then=hangs))

    async with running(a_store(client)) as store:
        await reaches(store, 6)

    await eventually(lambda: fake.hung_up == 1)


async def test_odd_objects_are_counted_and_logged_and_the_rest_goes_on(
    client: ApiClient, fake: FakeScript, caplog: pytest.LogCaptureFixture
) -> None:
    fake.will(
        lists(an_object("a", 1, "odd"), an_object("b", 2), {"no": "metadata"}, version=5),
        streams(
            event("ADDED", an_object("c", 6, "odd")),
            event("ADDED", {}),
            event("ADDED", an_object("d", 7)),
            then=hangs,
        ),
    )

    with caplog.at_level(logging.ERROR):
        async with running(a_store(client)) as store:
            await reaches(store, 7)

    assert list(store) == [a_view("b"), a_view("d")]
    assert store.stats.skipped == 4
    assert "key=ns/c" in caplog.text


async def test_history_that_went_back_is_followed(client: ApiClient, fake: FakeScript) -> None:
    fake.will(
        lists(an_object("a", 90, "x"), an_object("b", 95), version=100),
        refuses(410, "Expired"),
        lists(an_object("a", 40, "restored"), version=50),
        streams(event("ADDED", an_object("c", 51)), then=hangs),
    )

    async with running(a_store(client)) as store:
        await eventually(lambda: list(store) == [a_view("a", "restored"), a_view("c")])


async def test_waiting_for_a_version_ends_in_time(client: ApiClient, fake: FakeScript) -> None:
    fake.will(lists(version=5), streams(bookmark(6), then=hangs))

    async with running(a_store(client)) as store:
        assert await store.at_least(6, 5)
        assert await store.at_least(6, 0)
        assert not await store.at_least(7, 0.05)


async def test_catching_up_lists_beside_the_watch_what_that_does_not_show(
    client: ApiClient, fake: FakeScript
) -> None:
    fake.will(
        lists(an_object("a", 1), an_object("b", 2), version=5),
        streams(then=hangs),
        lists(version=9),
        lists(an_object("b", 2), an_object("c", 8), version=9),
    )

    async with running(a_store(client)) as store:
        await fake.has_seen(2)
        assert await store.catch_up(5)

    assert store.position == 9
    assert list(store) == [a_view("b"), a_view("c")]
    assert [seen.query.get("limit") for seen in fake.seen] == ["500", None, "1", "500"]


async def test_catching_up_lists_nothing_if_the_watch_is_quick(
    client: ApiClient, fake: FakeScript
) -> None:
    fake.will(lists(version=5), streams(event("ADDED", an_object("a", 9)), then=hangs))
    fake.will(lists(version=9))

    async with running(a_store(client)) as store:
        await fake.has_seen(2)
        assert await store.catch_up(5)

    assert len(fake.seen) == 3


async def test_list_beside_the_watch_gives_way_to_a_list_of_the_watch(
    client: ApiClient, fake: FakeScript
) -> None:
    gone = asyncio.Event()

    async def expires_later(request: web.Request) -> web.StreamResponse:
        await gone.wait()
        return await refuses(410)(request)

    async def second_page(request: web.Request) -> web.StreamResponse:
        gone.set()
        await eventually(lambda: store.position == 12)
        return await lists(an_object("ghost", 8), version=9)(request)

    fake.will(
        lists(version=5),
        expires_later,
        lists(version=9),
        lists(an_object("old", 7), version=9, more="next"),
        second_page,
        lists(an_object("new", 11), version=12),
    )

    async with running(a_store(client)) as store:
        await fake.has_seen(2)
        assert await store.catch_up(5)

    assert list(store) == [a_view("new")]


async def test_catching_up_says_when_it_takes_too_long_or_nobody_answers(
    client: ApiClient, fake: FakeScript
) -> None:
    fake.will(lists(version=5), hangs, lists(version=9), hangs, refuses(503))

    async with running(a_store(client)) as store:
        await fake.has_seen(2)

        assert not await store.catch_up(0.3)
        with pytest.raises(UnavailableError):
            await store.catch_up(0.3)


async def test_own_write_is_there_at_once(client: ApiClient) -> None:
    store = a_store(client)
    changes: list[Change[View]] = []
    store.subscribe(changes.append)

    store.note(an_object("a", 6, "x"))
    store.note(an_object("a", 6, "x"))

    assert changes == [Added(A, a_view("a", "x"))]


async def test_subscribers_hear_everything_in_order_even_if_one_notes_and_one_fails(
    client: ApiClient, caplog: pytest.LogCaptureFixture
) -> None:
    store = a_store(client)
    changes: list[Change[View]] = []

    def fails(_: Change[View]) -> None:
        raise ValueError("subscriber's own")

    def answers(change: Change[View]) -> None:
        if isinstance(change, Added):
            store.note(an_object("a", 7, "y"))

    for subscriber in (fails, answers, changes.append):
        store.subscribe(subscriber)
    store.note(an_object("a", 6, "x"))

    assert changes == [
        Added(A, a_view("a", "x")),
        Modified(A, a_view("a", "x"), a_view("a", "y")),
    ]
    assert caplog.text.count("subscriber failed") == 2


async def test_late_subscriber_hears_first_of_what_is_there(client: ApiClient) -> None:
    store = a_store(client)
    store.note(an_object("a", 6))
    heard: list[Change[View]] = []

    store.subscribe(heard.append)
    store.note(an_object("b", 7))

    assert heard == [Added(A, a_view("a")), Added(ObjectKey("ns", "b"), a_view("b"))]
