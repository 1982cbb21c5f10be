"""Queues on the API server: trees in any order, no cycles, nothing lost on deletion."""

from __future__ import annotations

from kube.calls.api import ApiClient
from kube.kinds import QUEUES
from local_cluster.api import Cluster
from tests.e2e.webhook.objects import (
    CLAIMS,
    OPEN,
    a_claim,
    a_queue,
    allocated,
    new_name,
    refusal,
    warnings_of,
)

APPLY = ("apply", "-f", "-")


async def test_a_tree_is_applied_in_any_order(server: Cluster, admin: ApiClient) -> None:
    child, parent = new_name("child"), new_name("parent")

    early = warnings_of(server, *APPLY, body=a_queue(child, parent=parent))
    late = warnings_of(server, *APPLY, body=a_queue(parent))

    assert early == f'Warning: spec.parent: Queue "{parent}" does not exist (yet).\n'
    assert late == ""


async def test_a_child_of_a_queue_of_a_moment_ago_is_not_warned_about(
    server: Cluster, admin: ApiClient
) -> None:
    child, parent = new_name("child"), new_name("parent")
    tree = {
        "apiVersion": "v1",
        "kind": "List",
        "items": [a_queue(parent), a_queue(child, parent=parent)],
    }

    assert warnings_of(server, *APPLY, body=tree) == ""


async def test_no_write_closes_a_cycle(admin: ApiClient) -> None:
    one, two, three = new_name("one"), new_name("two"), new_name("three")
    await admin.create(QUEUES, a_queue(one, parent=three))
    await admin.create(QUEUES, a_queue(two, parent=one))

    made = await refusal(admin.create(QUEUES, a_queue(three, parent=two)))
    await admin.create(QUEUES, a_queue(three))
    moved = await refusal(admin.merge_patch(QUEUES.at(three), {"spec": {"parent": two}}))

    for refused in (made, moved):
        assert refused.fields == ("spec.parent",)
        assert f"{three} -> {two} -> {one} -> {three} is a cycle." in refused.message


async def test_odd_resources_are_warned_about(server: Cluster, admin: ApiClient) -> None:
    parent = new_name("parent")
    few = [{"deviceClass": "onvif", "quota": 2}]
    many = [{"deviceClass": "onvif", "quota": 3}, {"deviceClass": "onfiv"}]
    await admin.create(QUEUES, a_queue(parent, resources=few))

    said = warnings_of(server, *APPLY, body=a_queue(parent=parent, resources=many))

    assert "spec.resources[0].quota: The children of queue" in said
    assert 'spec.resources[1].deviceClass: There is no DeviceClass or Configuration "onfiv"' in said


async def test_queues_that_claims_are_shared_with_are_looked_for(
    server: Cluster, admin: ApiClient
) -> None:
    friend, missing = new_name("friend"), new_name("missing")
    sharing = {"policy": "Deny", "queues": [friend, missing]}
    both = {
        "apiVersion": "v1",
        "kind": "List",
        "items": [a_queue(friend), a_queue(claimSharing=sharing)],
    }

    said = warnings_of(server, *APPLY, body=both)

    sentence = f'spec.claimSharing.queues: Queue "{missing}" does not exist (yet).'
    assert said == f"Warning: {sentence}\n"


async def test_a_quota_of_more_than_the_devices_is_warned_about(
    server: Cluster, admin: ApiClient
) -> None:
    """The Configuration usb of this world has no Instance."""
    resources = [{"deviceClass": "usb", "quota": 1}]

    said = warnings_of(server, *APPLY, body=a_queue(resources=resources))

    assert "spec.resources[0].quota: No device of usb is published (yet)." in said


async def test_a_queue_with_children_stays_until_they_are_gone(admin: ApiClient) -> None:
    child, parent = new_name("child"), new_name("parent")
    await admin.create(QUEUES, a_queue(parent))
    await admin.create(QUEUES, a_queue(child, parent=parent))

    refused = await refusal(admin.delete(QUEUES.at(parent)))

    assert refused.fields == ("metadata.name",)
    assert f'Queue "{parent}" has 1 child: {child}.' in refused.message
    await admin.delete(QUEUES.at(child))
    await admin.delete(QUEUES.at(parent))


async def test_a_queue_with_allocated_claims_stays_until_they_are_released(
    admin: ApiClient,
) -> None:
    queue = new_name("queue")
    await admin.create(QUEUES, a_queue(queue))
    stored = await admin.create(CLAIMS["v1"], a_claim(queue))
    path = CLAIMS["v1"].at(stored["metadata"]["name"], OPEN, "status")
    given = await admin.replace(path, allocated(stored))

    refused = await refusal(admin.delete(QUEUES.at(queue)))

    assert f'Queue "{queue}" owns 1 allocated claim: {OPEN}/{path.name}.' in refused.message
    await admin.replace(path, {**given, "status": {}})
    await admin.delete(QUEUES.at(queue))


async def test_a_queue_moves_with_its_allocated_claims(admin: ApiClient) -> None:
    queue, parent = new_name("queue"), new_name("parent")
    for body in (a_queue(queue), a_queue(parent)):
        await admin.create(QUEUES, body)
    stored = await admin.create(CLAIMS["v1"], a_claim(queue))
    path = CLAIMS["v1"].at(stored["metadata"]["name"], OPEN, "status")
    await admin.replace(path, allocated(stored))

    moved = await admin.merge_patch(QUEUES.at(queue), {"spec": {"parent": parent}})

    assert moved["spec"]["parent"] == parent
