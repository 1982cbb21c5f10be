"""Pods are bound once or not at all, and leave nothing on their claims where they are not."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from kube.kinds import CLAIMS, PODS
from kube.objects import JsonObject
from scheduler_plugin.objects.api import BindFailed, BindRequest, Bound
from scheduler_plugin.objects.names import QueueName
from tests.binder.builders import NODE, a_bind, a_binder, an_api, an_owner
from tests.fakes.apiserver import Fault
from tests.fakes.claim_server import CLAIM, QUEUE, FakeClaimServer
from tests.fakes.fence import FakeFence
from tests.fakes.killed import KilledError
from tests.scheduler_plugin.builders import a_claim_object, a_pod_object, a_result

WRITTEN = ("a", "uid-of-a")
NOBODY = ("", "")


async def written(server: FakeClaimServer) -> BindRequest:
    """A request whose owners are written."""
    request = a_bind(server)
    assert await a_binder(server).write_owners(request) is None
    server.asked.clear()
    return request


async def test_a_pod_is_bound_with_its_queue() -> None:
    server = an_api()

    assert await a_binder(server).bind(await written(server)) == Bound()

    pod = server.pod("a")
    assert pod["spec"]["nodeName"] == NODE
    assert pod["metadata"]["annotations"] == {QUEUE: "a"}
    assert server.asked == ["POST binding"]


async def test_a_pod_without_a_queue_gets_no_annotation() -> None:
    server = an_api()
    request = BindRequest(
        namespace="default",
        name="a",
        uid=a_bind(server).uid,
        node=NODE,
        queue=QueueName(""),
        claims=(),
    )

    assert await a_binder(server).bind(request) == Bound()

    assert server.pod("a")["metadata"]["annotations"] == {}


async def test_a_pod_that_is_bound_already_counts_as_bound() -> None:
    server = an_api()
    request = await written(server)
    noted: list[JsonObject] = []
    binder = a_binder(server, note_pod=noted.append)
    await binder.bind(request)

    assert await binder.bind(request) == Bound()

    assert server.bound == ["uid-of-a"]
    assert noted == [server.pod("a")]
    assert server.owner() == WRITTEN


async def test_a_binding_whose_answer_is_lost_is_looked_for() -> None:
    server = an_api()
    request = await written(server)
    server.will(Fault.UNANSWERED)

    assert await a_binder(server).bind(request) == Bound()

    assert server.asked == ["POST binding", "GET a"]


@pytest.mark.parametrize("fault", [Fault.LOST, Fault.FAILS])
async def test_a_binding_that_may_still_come_keeps_its_owner(fault: Fault) -> None:
    server = an_api()
    request = await written(server)
    server.will(fault)

    outcome = await a_binder(server).bind(request)

    assert isinstance(outcome, BindFailed)
    assert not outcome.is_certain
    assert server.owner() == WRITTEN


@pytest.mark.parametrize("first", [Fault.UNANSWERED, Fault.LOST])
async def test_a_pod_that_cannot_be_looked_at_keeps_its_owner(first: Fault) -> None:
    server = an_api()
    request = await written(server)
    server.will(first, Fault.LOST)

    outcome = await a_binder(server).bind(request)

    assert isinstance(outcome, BindFailed)
    assert not outcome.is_certain
    assert server.owner() == WRITTEN


async def test_a_conflict_that_cannot_be_looked_at_keeps_its_owner() -> None:
    server = an_api()
    request = await written(server)
    await a_binder(server).bind(request)
    server.will(None, Fault.LOST)

    outcome = await a_binder(server).bind(request)

    assert isinstance(outcome, BindFailed)
    assert not outcome.is_certain
    assert server.owner() == WRITTEN


def _delete(server: FakeClaimServer) -> None:
    server.remove(PODS.at("a", "default"))


def _is_being_deleted(server: FakeClaimServer) -> None:
    stamp = {"deletionTimestamp": "2026-11-21T12:00:00Z"}
    server.change(PODS.at("a", "default"), lambda pod: pod["metadata"].update(stamp))


def _make_anew(server: FakeClaimServer) -> None:
    server.put(PODS, a_pod_object("a", queue="a", uid="another"))


@pytest.mark.parametrize("meanwhile", [_delete, _is_being_deleted, _make_anew])
@pytest.mark.parametrize("lost", [True, False])
async def test_a_pod_that_is_gone_leaves_no_owner(
    lost: bool, meanwhile: Callable[[FakeClaimServer], None]
) -> None:
    server = an_api()
    request = await written(server)
    if lost:
        server.will(Fault.LOST)
    meanwhile(server)

    outcome = await a_binder(server).bind(request)

    assert isinstance(outcome, BindFailed)
    assert outcome.is_certain
    assert server.owner() == NOBODY
    assert server.bound == []


async def test_a_pod_that_somebody_else_bound_elsewhere_keeps_its_claim() -> None:
    server = an_api()
    request = await written(server)
    server.change(PODS.at("a", "default"), lambda pod: pod["spec"].update(nodeName="node-b"))

    outcome = await a_binder(server).bind(request)

    assert outcome == BindFailed('Pod default/a is bound to node "node-b".', is_certain=True)
    assert server.owner() == WRITTEN


async def test_a_refused_binding_is_taken_back() -> None:
    server = an_api()
    request = await written(server)
    server.will(Fault.REFUSED)

    outcome = await a_binder(server).bind(request)

    assert outcome == BindFailed("429 TooManyRequests: too many requests", is_certain=True)
    assert server.asked == ["GET cam", "PATCH cam"]
    assert server.owner() == NOBODY


async def test_nothing_is_bound_behind_a_closed_fence() -> None:
    server = an_api()
    request = await written(server)

    outcome = await a_binder(server, FakeFence(open_for=0)).bind(request)

    assert outcome == BindFailed("the Lease may be lost", is_certain=False)
    assert server.bound == []
    assert server.owner() == WRITTEN


async def test_a_fence_that_closes_after_the_binding_failed_leaves_the_owner() -> None:
    server = an_api()
    request = await written(server)
    server.will(Fault.REFUSED)

    outcome = await a_binder(server, FakeFence(open_for=1)).bind(request)

    assert outcome == BindFailed("429 TooManyRequests: too many requests", is_certain=False)
    assert server.owner() == WRITTEN


def _share(claim: dict[str, Any]) -> None:
    claim["status"]["reservedFor"].append({"resource": "pods", "name": "b", "uid": "uid-of-b"})


def _own(claim: dict[str, Any]) -> None:
    claim["metadata"]["annotations"]["moorage.dev/owner-pod"] = "uid-of-b"


@pytest.mark.parametrize("change", [_share, _own])
@pytest.mark.parametrize("moment", [1, 2])
async def test_what_another_pod_relies_on_is_not_taken_back(
    moment: int, change: Callable[[dict[str, Any]], None]
) -> None:
    server = an_api()
    request = await written(server)
    meanwhile = [None] * (moment - 1)
    server.will(Fault.REFUSED, *meanwhile, lambda: server.change(CLAIM, change))

    outcome = await a_binder(server).bind(request)

    assert isinstance(outcome, BindFailed)
    assert server.owner()[0] == "a"


async def test_a_claim_that_was_made_anew_is_not_taken_back_from() -> None:
    server = an_api()
    request = await written(server)
    again = a_claim_object(
        "cam", uid="another", queue="a", owner_pod="a", results=[a_result()], pods=["a"]
    )
    server.will(Fault.REFUSED, lambda: server.put(CLAIMS, again))

    await a_binder(server).bind(request)

    assert server.owner() == WRITTEN


async def test_a_claim_that_is_gone_has_nothing_to_be_taken_back() -> None:
    server = an_api()
    request = await written(server)
    server.will(Fault.REFUSED, lambda: server.remove(CLAIM))

    outcome = await a_binder(server).bind(request)

    assert outcome == BindFailed("429 TooManyRequests: too many requests", is_certain=True)


async def test_an_owner_that_stood_before_is_not_taken_back() -> None:
    server = an_api(queue="a", owner_pod="a")
    request = a_bind(server)
    server.will(Fault.REFUSED)

    assert isinstance(await a_binder(server).bind(request), BindFailed)

    assert server.owner() == WRITTEN


async def test_the_pod_whose_queue_owns_the_claim_keeps_it_when_a_foreign_bind_fails() -> None:
    server = an_api("a", "b")
    request = a_bind(server, "b", an_owner(server, "a", "a"))
    binder = a_binder(server)
    await binder.write_owners(request)
    server.will(Fault.REFUSED)

    assert isinstance(await binder.bind(request), BindFailed)

    assert server.owner() == WRITTEN


@pytest.mark.parametrize("fault", [Fault.KILLED_BEFORE, Fault.KILLED_AFTER])
async def test_whoever_starts_after_a_kill_binds_once(fault: Fault) -> None:
    server = an_api()
    request = await written(server)
    server.will(fault)
    with pytest.raises(KilledError):
        await a_binder(server).bind(request)

    assert await a_binder(server).bind(a_bind(server)) == Bound()

    assert server.bound == ["uid-of-a"]
    assert server.owner() == WRITTEN


@pytest.mark.parametrize("step", [0, 1, 2])
@pytest.mark.parametrize("fault", [Fault.KILLED_BEFORE, Fault.KILLED_AFTER])
async def test_a_kill_while_taking_back_leaves_an_owner_or_none(fault: Fault, step: int) -> None:
    server = an_api()
    request = await written(server)
    _delete(server)
    server.will(*[None] * step, fault)

    with pytest.raises(KilledError):
        await a_binder(server).bind(request)

    done = step == 2 and fault is Fault.KILLED_AFTER
    assert server.owner() == (NOBODY if done else WRITTEN)


async def test_a_claim_is_busy_until_its_pod_is_bound() -> None:
    server = an_api()
    request = await written(server)
    binder = a_binder(server)
    busy: list[bool] = []
    server.will(lambda: busy.append(binder.is_busy(request.claims[0].uid)))

    await binder.bind(request)

    assert busy == [True]
    assert not binder.is_busy(request.claims[0].uid)
