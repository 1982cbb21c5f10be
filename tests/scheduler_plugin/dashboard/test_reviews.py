"""Who a viewer is and what he may list: the API server says it, and it counts for a short time."""

from __future__ import annotations

import asyncio
from typing import Any, cast

import pytest

from kube.calls.api import ApiClient
from kube.kinds import CLAIMS, PODS, QUEUES
from kube.objects import JsonObject
from kube.resources import Resource
from scheduler_plugin.dashboard import apiserver_reviews
from scheduler_plugin.dashboard.apiserver_reviews import (
    MOST_REMEMBERED,
    REMEMBERED_SECONDS,
    CannotReviewError,
    NotSignedInError,
    Reviews,
    Viewer,
)
from scheduler_plugin.dashboard.parts import Access
from tests.fakes.reviewers import FakeReviewer


class Clock:
    """Goes when a test says so."""

    now = 0.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def reviewer() -> FakeReviewer:
    return FakeReviewer(alice={"pods", "resourceclaims/team-a"})


@pytest.fixture
def reviews(reviewer: FakeReviewer, clock: Clock) -> Reviews:
    return Reviews(cast(ApiClient, reviewer), clock)


async def test_a_token_is_whom_the_api_server_says(reviews: Reviews) -> None:
    viewer = await reviews.viewer("alice")

    assert viewer == Viewer("alice", groups=("system:authenticated",))


@pytest.mark.parametrize("token", ["", "mallory", "x" * 20_000])
async def test_nobody_is_told_so(reviews: Reviews, token: str) -> None:
    with pytest.raises(NotSignedInError, match="token"):
        await reviews.viewer(token)


async def test_what_one_may_list_depends_on_the_namespace(reviews: Reviews) -> None:
    alice = await reviews.viewer("alice")

    assert await reviews.may(alice, Access(PODS))
    assert not await reviews.may(alice, Access(CLAIMS))
    assert await reviews.may(alice, Access(CLAIMS, "team-a"))
    assert not await reviews.may(alice, Access(QUEUES))


async def test_answers_are_remembered_for_a_short_time(
    reviews: Reviews, reviewer: FakeReviewer, clock: Clock
) -> None:
    for _ in range(3):
        assert await reviews.may(await reviews.viewer("alice"), Access(PODS))
    asked = list(reviewer.asked)
    reviewer.may = {}
    clock.now += REMEMBERED_SECONDS + 1

    assert asked == ["tokenreviews", "subjectaccessreviews"]
    with pytest.raises(NotSignedInError):
        await reviews.viewer("alice")


async def test_no_answer_is_no_leave(reviews: Reviews, reviewer: FakeReviewer) -> None:
    reviewer.away = True

    with pytest.raises(CannotReviewError, match="no connection"):
        await reviews.viewer("alice")
    reviewer.away = False
    assert (await reviews.viewer("alice")).name == "alice"


async def test_tokens_of_nobody_keep_no_viewer_waiting() -> None:
    """The API server asks a slow authenticator about each token that it does not know."""

    class SlowForStrangers(FakeReviewer):
        async def create(self, resource: Resource, body: JsonObject, **more: Any) -> JsonObject:
            if body["spec"].get("token", "alice") != "alice":
                await asyncio.Event().wait()
            return await super().create(resource, body, **more)

    clock = Clock()
    reviews = Reviews(cast(ApiClient, SlowForStrangers(alice={"pods"})), clock)
    alice = await reviews.viewer("alice")
    flood = [asyncio.create_task(reviews.viewer(f"token-{number}")) for number in range(100)]
    await asyncio.sleep(0)

    assert await reviews.may(alice, Access(PODS))
    clock.now += REMEMBERED_SECONDS + 1
    assert await reviews.viewer("alice") == alice
    assert not any(one.done() for one in flood)
    for one in flood:
        one.cancel()
    await asyncio.wait(flood)


async def test_tokens_of_nobody_make_no_viewer_forgotten(
    reviews: Reviews, reviewer: FakeReviewer
) -> None:
    assert await reviews.may(await reviews.viewer("alice"), Access(PODS))
    for number in range(MOST_REMEMBERED + 1):
        with pytest.raises(NotSignedInError):
            await reviews.viewer(f"token-{number}")
    reviewer.asked.clear()

    assert await reviews.may(await reviews.viewer("alice"), Access(PODS))
    assert not reviewer.asked


async def test_few_are_asked_about_at_one_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(apiserver_reviews, "WAIT_SECONDS", 0.01)
    under_way, most = 0, 0

    class Slow:
        async def create(self, *_: Any, **__: Any) -> JsonObject:
            nonlocal under_way, most
            under_way += 1
            most = max(most, under_way)
            try:
                await asyncio.Event().wait()
            finally:
                under_way -= 1
            raise AssertionError

    reviews = Reviews(cast(ApiClient, Slow()))
    calls = (reviews.viewer(f"token-{number}") for number in range(20))
    answers = await asyncio.gather(*calls, return_exceptions=True)

    assert most == apiserver_reviews.AT_ONCE_FOR_ONE
    assert {type(answer) for answer in answers} == {CannotReviewError}


def test_a_denial_names_verb_resource_and_place() -> None:
    assert Access(QUEUES).denied("bob") == (
        '"bob" may not see this: it needs the verb "list" on "queues.moorage.dev".'
    )
    assert Access(PODS, "team-a").denied("bob").endswith('"list" on "pods" in namespace "team-a".')
    assert (
        Access(CLAIMS).denied("bob").endswith('"resourceclaims.resource.k8s.io" in all namespaces.')
    )
