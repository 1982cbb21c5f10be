"""Owners are written: what is there first, what others write meanwhile, what goes wrong."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from kube.kinds import CLAIMS
from kube.objects import JsonObject
from scheduler_plugin.objects.api import BindFailed, ClaimsChanged
from scheduler_plugin.objects.names import PodUid
from tests.binder.builders import a_bind, a_binder, an_api, an_owner
from tests.fakes.apiserver import Fault
from tests.fakes.claim_server import CLAIM, OWNER_LEFT_AT, QUEUE, FakeClaimServer
from tests.fakes.fence import FakeFence
from tests.fakes.killed import KilledError
from tests.scheduler_plugin.builders import OWN_GROUP, a_claim_object, a_result

WRITTEN = ("a", "uid-of-a")
STALE = {"queue": "x", "owner_pod": "x"}


async def test_label_and_pod_are_written_together() -> None:
    server = an_api()
    noted: list[JsonObject] = []

    assert await a_binder(server, note_claim=noted.append).write_owners(a_bind(server)) is None

    assert server.owner() == WRITTEN
    assert server.asked == ["PATCH cam"]
    assert noted == [server.claim()]


async def test_a_claim_that_says_it_already_is_not_written() -> None:
    server = an_api(queue="a", owner_pod="a")

    assert await a_binder(server).write_owners(a_bind(server)) is None

    assert server.asked == []


async def test_a_stale_owner_of_another_queue_is_removed_first() -> None:
    server = an_api(**STALE, annotations={OWNER_LEFT_AT: "2026-11-21T12:00:00Z"})

    assert await a_binder(server).write_owners(a_bind(server)) is None

    assert server.labels == ["", "a"]
    assert server.owner() == WRITTEN
    assert OWNER_LEFT_AT not in server.claim()["metadata"]["annotations"]


async def test_a_stale_owner_of_the_same_queue_keeps_its_label() -> None:
    server = an_api(queue="a", owner_pod="x", annotations={OWNER_LEFT_AT: "2026-11-21T12:00:00Z"})

    assert await a_binder(server).write_owners(a_bind(server)) is None

    assert server.labels == []
    assert server.owner() == WRITTEN
    assert OWNER_LEFT_AT not in server.claim()["metadata"]["annotations"]


@pytest.mark.parametrize("label", ["a", "b"])
async def test_a_label_that_a_user_set_is_never_touched(label: str) -> None:
    server = an_api(queue=label)

    outcome = await a_binder(server).write_owners(a_bind(server))

    assert isinstance(outcome, BindFailed)
    assert f'ResourceClaim default/cam was created for queue "{label}"' in outcome.why
    assert server.asked == []


def _remove_claim(server: FakeClaimServer) -> None:
    server.remove(CLAIM)


def _replace_claim(server: FakeClaimServer) -> None:
    again = a_claim_object("cam", uid="another", results=[a_result()], pods=["a"])
    server.put(CLAIMS, again)


def _reserve_claim(server: FakeClaimServer) -> None:
    server.change(CLAIM, lambda claim: claim["status"].update(reservedFor=[]))


def _own_claim(server: FakeClaimServer) -> None:
    server.put(CLAIMS, a_claim_object("cam", queue="x", owner_pod="x"))


@pytest.mark.parametrize(("claim", "step"), [({}, 0), (STALE, 0), (STALE, 1)])
@pytest.mark.parametrize("meanwhile", [_remove_claim, _replace_claim, _reserve_claim, _own_claim])
async def test_what_somebody_wrote_meanwhile_is_judged_again(
    meanwhile: Callable[[FakeClaimServer], None], step: int, claim: dict[str, Any]
) -> None:
    server = an_api(**claim)
    request = a_bind(server)
    server.will(*[None] * step, lambda: meanwhile(server))

    outcome = await a_binder(server).write_owners(request)

    assert outcome == ClaimsChanged(request.claims[0])
    assert "a" not in server.labels


@pytest.mark.parametrize("step", [0, 1])
async def test_a_write_whose_answer_is_lost_is_looked_for(step: int) -> None:
    server = an_api(**STALE)
    server.will(*[None] * step, Fault.UNANSWERED)

    assert await a_binder(server).write_owners(a_bind(server)) is None

    assert server.asked.count("GET cam") == 1
    assert server.labels == ["", "a"]
    assert server.owner() == WRITTEN


@pytest.mark.parametrize("fault", [Fault.LOST, Fault.FAILS])
async def test_a_write_that_may_still_come_is_no_certain_failure(fault: Fault) -> None:
    server = an_api()
    server.will(fault)

    outcome = await a_binder(server).write_owners(a_bind(server))

    assert isinstance(outcome, BindFailed)
    assert not outcome.is_certain
    assert server.owner() == ("", "")


async def test_a_lost_answer_and_no_look_is_no_certain_failure() -> None:
    server = an_api()
    server.will(Fault.UNANSWERED, Fault.LOST)

    outcome = await a_binder(server).write_owners(a_bind(server))

    assert isinstance(outcome, BindFailed)
    assert not outcome.is_certain


@pytest.mark.parametrize("meanwhile", [_remove_claim, _replace_claim])
async def test_a_lost_answer_about_a_claim_that_is_gone_is_judged_again(
    meanwhile: Callable[[FakeClaimServer], None],
) -> None:
    server = an_api()
    server.will(Fault.UNANSWERED, lambda: meanwhile(server))
    request = a_bind(server)

    assert await a_binder(server).write_owners(request) == ClaimsChanged(request.claims[0])


async def test_a_server_that_refuses_for_its_load_did_nothing() -> None:
    server = an_api()
    server.will(Fault.REFUSED)

    outcome = await a_binder(server).write_owners(a_bind(server))

    why = "ResourceClaim default/cam: 429 TooManyRequests: too many requests"
    assert outcome == BindFailed(why, is_certain=True)
    assert server.asked == []


async def test_what_a_policy_refuses_fails_with_its_sentence() -> None:
    server = an_api()
    request = a_bind(server)
    # Somebody gives the claim a label and leaves its version alone, so that the policy decides.
    server.claim()["metadata"]["labels"][QUEUE] = "x"

    outcome = await a_binder(server).write_owners(request)

    why = 'ResourceClaim default/cam: 422 Invalid: label "x" never changes'
    assert outcome == BindFailed(why, is_certain=True)


async def test_nothing_is_written_behind_a_closed_fence() -> None:
    server = an_api()
    fence = FakeFence(open_for=0)

    outcome = await a_binder(server, fence).write_owners(a_bind(server))

    why = "ResourceClaim default/cam: the Lease may be lost"
    assert outcome == BindFailed(why, is_certain=True)
    assert fence.asked == [2.0]
    assert server.asked == []


async def test_a_fence_that_closes_leaves_a_stale_owner_removed() -> None:
    server = an_api(**STALE)

    outcome = await a_binder(server, FakeFence(open_for=1)).write_owners(a_bind(server))

    assert outcome == BindFailed("ResourceClaim default/cam: the Lease may be lost", True)
    assert server.owner() == ("", "")


def _two_claims(server: FakeClaimServer) -> Any:
    server.put(CLAIMS, a_claim_object("mic", results=[a_result()], pods=["a"]))
    return a_bind(server, "a", an_owner(server, "a", "a"), an_owner(server, "a", "a", "mic"))


async def test_a_failure_takes_back_what_was_written_on_other_claims() -> None:
    server = an_api()
    server.will(None, Fault.REFUSED)

    outcome = await a_binder(server).write_owners(_two_claims(server))

    assert isinstance(outcome, BindFailed)
    assert outcome.is_certain
    assert server.labels == ["a", ""]
    assert (server.owner(), server.owner("mic")) == (("", ""), ("", ""))


async def test_a_failure_is_not_certain_where_something_is_left() -> None:
    server = an_api()

    outcome = await a_binder(server, FakeFence(open_for=1)).write_owners(_two_claims(server))

    assert outcome == BindFailed("ResourceClaim default/mic: the Lease may be lost", False)
    assert (server.owner(), server.owner("mic")) == (WRITTEN, ("", ""))


async def test_other_claims_keep_their_owner_where_one_is_judged_again() -> None:
    server = an_api()
    request = _two_claims(server)
    server.will(None, lambda: server.remove(CLAIMS.at("mic", "default")))

    assert await a_binder(server).write_owners(request) == ClaimsChanged(request.claims[1])

    assert server.owner() == WRITTEN


async def test_a_refusal_takes_back_what_was_written_and_nobody_else_relies_on() -> None:
    server = an_api()
    request = _two_claims(server)
    binder = a_binder(server)
    assert await binder.write_owners(request) is None
    shared = [{"resource": "pods", "name": pod, "uid": f"uid-of-{pod}"} for pod in "ab"]
    server.change(CLAIMS.at("mic", "default"), lambda c: c["status"].update(reservedFor=shared))

    assert await binder.roll_back(request)

    assert (server.owner(), server.owner("mic")) == (("", ""), WRITTEN)
    assert await binder.roll_back(request), "a second time there is nothing to do"


async def test_the_owner_of_a_claim_of_a_podgroup_is_not_taken_back() -> None:
    """The other pods of the group may rely on it, and their queue is the same."""
    server = an_api()
    request = a_bind(server)
    binder = a_binder(server)
    assert await binder.write_owners(request) is None
    group = [{**OWN_GROUP, "name": "train", "uid": "uid-of-train"}]
    server.change(CLAIMS.at("cam", "default"), lambda c: c["status"].update(reservedFor=group))

    assert await binder.roll_back(request)

    assert server.owner() == WRITTEN


async def test_what_cannot_be_taken_back_is_said() -> None:
    server = an_api()
    request = a_bind(server)
    assert await a_binder(server).write_owners(request) is None

    assert not await a_binder(server, FakeFence(open_for=0)).roll_back(request)

    assert server.owner() == WRITTEN


@pytest.mark.parametrize("fault", [Fault.KILLED_BEFORE, Fault.KILLED_AFTER])
@pytest.mark.parametrize("step", [0, 1])
async def test_whoever_starts_after_a_kill_ends_in_the_same_state(step: int, fault: Fault) -> None:
    server = an_api(**STALE)
    server.will(*[None] * step, fault)
    with pytest.raises(KilledError):
        await a_binder(server).write_owners(a_bind(server))

    assert await a_binder(server).write_owners(a_bind(server)) is None

    assert server.labels == ["", "a"]
    assert server.owner() == WRITTEN


async def test_a_second_call_with_the_old_version_is_judged_again() -> None:
    server = an_api()
    request = a_bind(server)
    binder = a_binder(server)
    await binder.write_owners(request)

    assert await binder.write_owners(request) == ClaimsChanged(request.claims[0])

    assert server.labels == ["a"]


async def test_a_server_that_hangs_holds_a_bind_for_no_longer_than_its_time() -> None:
    server = an_api()

    async def hangs(_: str) -> None:
        await asyncio.Event().wait()

    server.next_happening = hangs
    binder = a_binder(server)
    binder.write_seconds = 0.01

    outcome = await binder.write_owners(a_bind(server))

    why = "Pod default/a: writing the owner of its claims took longer than 0.02 s."
    assert outcome == BindFailed(why, is_certain=False)


async def test_a_claim_is_busy_while_its_owner_is_written() -> None:
    server = an_api()
    binder = a_binder(server)
    request = a_bind(server)
    uid = request.claims[0].uid
    busy: list[bool] = []
    server.will(lambda: busy.append(binder.is_busy(uid)))

    await binder.write_owners(request)

    assert busy == [True]
    assert not binder.is_busy(uid)


async def test_an_owner_that_was_decided_is_written_for_its_own_pod() -> None:
    server = an_api("a", "b")
    request = a_bind(server, "b", an_owner(server, "a", "a"))

    assert await a_binder(server).write_owners(request) is None

    assert server.owner() == ("a", PodUid("uid-of-a"))
