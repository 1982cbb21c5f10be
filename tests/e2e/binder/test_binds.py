"""Owners and bindings on a real API server, written as the binder's account."""

from __future__ import annotations

import pytest

from binder.api import Binder
from kube.calls.api import ApiClient, ForbiddenError, Preconditions
from kube.kinds import CLAIMS, PODS
from kube.objects import JsonObject
from scheduler_plugin.objects.api import BindFailed, Bound, ClaimsChanged
from tests.e2e.binder.world import (
    NAMESPACE,
    NODE,
    OWNER_POD,
    QUEUE,
    a_binding,
    a_claim,
    new_stage,
    owner_of,
    uid_of,
)
from tests.fakes.fence import FakeFence


def a_binder(client: ApiClient, noted: list[JsonObject] | None = None) -> Binder:
    seen = noted if noted is not None else []
    return Binder(client, FakeFence(), queue_label=QUEUE, note_claim=seen.append)


async def test_a_pod_is_bound_and_its_claim_says_whose_it_is(
    account: ApiClient, admin: ApiClient
) -> None:
    stage = await new_stage(admin)
    pod = await stage.new_pod()
    await stage.allocate(pod)
    noted: list[JsonObject] = []
    binder = a_binder(account, noted)
    request = await stage.request(pod)

    assert await binder.write_owners(request) is None
    assert await binder.bind(request) == Bound()

    assert owner_of(await stage.claim()) == ("a", uid_of(pod))
    assert [owner_of(claim) for claim in noted] == [("a", uid_of(pod))]
    bound = await stage.pod(pod)
    assert bound["spec"]["nodeName"] == NODE
    assert bound["metadata"]["annotations"] == {QUEUE: "a"}


async def test_a_pod_that_asks_for_nothing_counted_is_bound_without_a_queue(
    account: ApiClient, admin: ApiClient
) -> None:
    stage = await new_stage(admin)
    pod = await stage.new_pod()

    assert await a_binder(account).bind(await stage.request(pod, "", owner=("", ""))) == Bound()

    assert "annotations" not in (await stage.pod(pod))["metadata"]


async def test_a_pod_is_bound_once_however_often_it_is_asked_for(
    account: ApiClient, admin: ApiClient
) -> None:
    stage = await new_stage(admin)
    pod = await stage.new_pod()
    await stage.allocate(pod)
    binder = a_binder(account)
    request = await stage.request(pod)

    assert await binder.write_owners(request) is None
    assert await binder.bind(request) == Bound()
    version = (await stage.pod(pod))["metadata"]["resourceVersion"]
    assert await binder.bind(await stage.request(pod)) == Bound()

    assert (await stage.pod(pod))["metadata"]["resourceVersion"] == version


async def test_a_stale_owner_of_another_queue_is_replaced(
    account: ApiClient, admin: ApiClient
) -> None:
    stage = await new_stage(admin)
    former, pod = await stage.new_pod(), await stage.new_pod()
    await stage.allocate(former)
    binder = a_binder(account)
    await binder.write_owners(await stage.request(former, "a"))
    await stage.allocate(pod)

    assert await binder.write_owners(await stage.request(pod, "b")) is None

    assert owner_of(await stage.claim()) == ("b", uid_of(pod))


async def test_a_stale_owner_of_the_same_queue_gets_its_new_pod(
    account: ApiClient, admin: ApiClient
) -> None:
    stage = await new_stage(admin)
    former, pod = await stage.new_pod(), await stage.new_pod()
    await stage.allocate(former)
    binder = a_binder(account)
    await binder.write_owners(await stage.request(former, "a"))
    await stage.allocate(pod)
    noted: list[JsonObject] = []

    request = await stage.request(pod, "a")
    assert await a_binder(account, noted).write_owners(request) is None

    assert [owner_of(claim) for claim in noted] == [("a", uid_of(pod))]
    assert owner_of(await stage.claim()) == ("a", uid_of(pod))


async def test_the_owner_that_was_decided_stays_where_a_foreign_pod_is_bound_first(
    account: ApiClient, admin: ApiClient
) -> None:
    stage = await new_stage(admin)
    owner, foreign = await stage.new_pod(), await stage.new_pod()
    await stage.allocate(owner, foreign)
    binder = a_binder(account)
    decided = ("a", uid_of(owner))

    request = await stage.request(foreign, "b", owner=decided)
    assert await binder.write_owners(request) is None
    assert await binder.bind(request) == Bound()

    assert owner_of(await stage.claim()) == decided
    assert (await stage.pod(foreign))["metadata"]["annotations"] == {QUEUE: "b"}


async def test_what_was_written_is_taken_back_where_the_pod_is_gone(
    account: ApiClient, admin: ApiClient
) -> None:
    stage = await new_stage(admin)
    pod = await stage.new_pod()
    await stage.allocate(pod)
    binder = a_binder(account)
    request = await stage.request(pod)
    await binder.write_owners(request)
    await admin.delete(PODS.path_of(pod), grace_period_seconds=0)

    outcome = await binder.bind(request)

    assert isinstance(outcome, BindFailed)
    assert outcome.is_certain
    assert "not found" in outcome.why
    assert owner_of(await stage.claim()) == ("", "")


async def test_an_owner_stays_where_another_pod_reserved_the_claim_too(
    account: ApiClient, admin: ApiClient
) -> None:
    stage = await new_stage(admin)
    pod, other = await stage.new_pod(), await stage.new_pod()
    await stage.allocate(pod)
    binder = a_binder(account)
    request = await stage.request(pod)
    await binder.write_owners(request)
    await stage.allocate(pod, other)
    await admin.delete(PODS.path_of(pod), grace_period_seconds=0)

    assert isinstance(await binder.bind(request), BindFailed)

    assert owner_of(await stage.claim()) == ("a", uid_of(pod))


async def test_a_pod_that_was_made_anew_under_its_name_is_not_bound(
    account: ApiClient, admin: ApiClient
) -> None:
    stage = await new_stage(admin)
    pod = await stage.new_pod()
    request = await stage.request(pod)
    await admin.delete(PODS.path_of(pod), grace_period_seconds=0)
    fields = {key: pod["metadata"][key] for key in ("name", "namespace")}
    again = await admin.create(PODS, {"metadata": fields, "spec": pod["spec"]})

    outcome = await a_binder(account).bind(request)

    what = f"Pod {NAMESPACE}/{request.name}"
    assert outcome == BindFailed(
        f"{what} was deleted and replaced by another pod of that name.", is_certain=True
    )
    assert "nodeName" not in (await stage.pod(again))["spec"]


async def test_a_pod_that_runs_elsewhere_keeps_its_claim(
    account: ApiClient, admin: ApiClient
) -> None:
    stage = await new_stage(admin)
    pod = await stage.new_pod()
    await stage.allocate(pod)
    binder = a_binder(account)
    request = await stage.request(pod)
    await binder.write_owners(request)
    elsewhere = a_binding(request.name)
    elsewhere["target"]["name"] = "node-b"
    await admin.create(PODS, elsewhere, subresource="binding")

    outcome = await binder.bind(request)

    what = f"Pod {NAMESPACE}/{request.name}"
    assert outcome == BindFailed(f'{what} is bound to node "node-b".', is_certain=True)
    assert owner_of(await stage.claim()) == ("a", uid_of(pod))


async def test_a_claim_that_somebody_wrote_first_is_judged_again(
    account: ApiClient, admin: ApiClient
) -> None:
    stage = await new_stage(admin)
    pod, other = await stage.new_pod(), await stage.new_pod()
    await stage.allocate(pod)
    request = await stage.request(pod)
    await stage.allocate(pod, other)

    outcome = await a_binder(account).write_owners(request)

    assert outcome == ClaimsChanged(request.claims[0])
    assert owner_of(await stage.claim()) == ("", "")


@pytest.mark.parametrize("again", [True, False])
async def test_a_claim_that_was_made_anew_under_its_name_is_judged_again(
    again: bool, account: ApiClient, admin: ApiClient
) -> None:
    stage = await new_stage(admin)
    pod = await stage.new_pod()
    request = await stage.request(pod)
    await admin.delete(CLAIMS.at(stage.claim_name, NAMESPACE))
    if again:
        await admin.create(CLAIMS, a_claim(stage.claim_name))

    outcome = await a_binder(account).write_owners(request)

    assert outcome == ClaimsChanged(request.claims[0])
    if again:
        assert owner_of(await stage.claim()) == ("", "")


async def test_nobody_else_writes_an_owner_or_binds_with_a_queue(
    user: ApiClient, admin: ApiClient
) -> None:
    stage = await new_stage(admin)
    pod = await stage.new_pod()
    await stage.allocate(pod)
    request = await stage.request(pod)
    binder = a_binder(user)

    written, bound = await binder.write_owners(request), await binder.bind(request)

    assert isinstance(written, BindFailed)
    assert written.is_certain
    assert f"label {QUEUE} is set after creation only by" in written.why
    assert isinstance(bound, BindFailed)
    assert bound.is_certain
    assert f"{QUEUE} in its metadata comes only from" in bound.why
    assert owner_of(await stage.claim()) == ("", "")
    assert "nodeName" not in (await stage.pod(pod))["spec"]


async def test_nobody_else_removes_an_owner(
    account: ApiClient, user: ApiClient, admin: ApiClient
) -> None:
    stage = await new_stage(admin)
    pod = await stage.new_pod()
    await a_binder(account).write_owners(await stage.request(pod))
    claim = await stage.claim()
    patch = {"metadata": {"labels": {QUEUE: None}, "annotations": {OWNER_POD: None}}}
    version = Preconditions(uid_of(claim), claim["metadata"]["resourceVersion"])

    with pytest.raises(ForbiddenError, match="removed only by"):
        await user.merge_patch(CLAIMS.path_of(claim), patch, preconditions=version)

    assert owner_of(await stage.claim()) == ("a", uid_of(pod))
