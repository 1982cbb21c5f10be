"""A claim without its CDI file is in use only as the API server and the node's pods say."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from driver.preparing.lost_claims import Use, use_of
from tests.driver.claim_builders import a_claim, a_reference, a_result, prepared

WANTED = a_reference(1)
POD = {"resource": "pods", "name": "user", "uid": "uid-of-user"}
GROUP = {"apiGroup": "scheduling.k8s.io", "resource": "podgroups", "name": "g", "uid": "uid-g"}
TASK = {"apiGroup": "example.com", "resource": "tasks", "name": "g", "uid": "uid-t"}


def a_user(phase: str = "Running", uid: str = "uid-of-user", **metadata: str) -> dict[str, Any]:
    return {"metadata": {"name": "user", "uid": uid, **metadata}, "status": {"phase": phase}}


def reserved(*users: Mapping[str, str], device: str = "loop-aaaaaa") -> dict[str, Any]:
    claim = a_claim(WANTED, a_result(device))
    claim["status"]["reservedFor"] = list(users)
    return claim


def a_member(*, group: str = "g", claim: str = WANTED.name, **metadata: str) -> dict[str, Any]:
    """A pod of a PodGroup that names a claim."""
    user = a_user(**{"namespace": WANTED.namespace, **metadata})
    named = [{"name": "disk", "resourceClaimName": claim}]
    return {**user, "spec": {"schedulingGroup": {"podGroupName": group}, "resourceClaims": named}}


ENDING = a_user(deletionTimestamp="2026-01-01T00:00:00Z")


@pytest.mark.parametrize(
    ("found", "pods", "use"),
    [
        (reserved(POD), [a_user()], Use.RUNNING),
        (reserved(POD), [a_user("Pending")], Use.RUNNING),
        (reserved(POD), [ENDING], Use.ENDING),
        (reserved(POD, {**POD, "uid": "b"}), [ENDING, a_user(uid="b")], Use.RUNNING),
        (reserved(TASK), [], Use.ENDING),
        (reserved(GROUP), [], Use.NONE),
        (reserved(GROUP), [a_member()], Use.RUNNING),
        (reserved(GROUP, POD), [a_member(uid="b"), a_user()], Use.RUNNING),
        (reserved(GROUP), [a_member(deletionTimestamp="2026-01-01T00:00:00Z")], Use.ENDING),
        (reserved(GROUP), [{**a_member(), "status": {"phase": "Failed"}}], Use.NONE),
        (reserved(GROUP), [a_member(group="h")], Use.NONE),
        (reserved(GROUP), [a_member(claim="other")], Use.NONE),
        (reserved(GROUP), [a_member(namespace="other")], Use.NONE),
        (reserved(GROUP), [a_user()], Use.NONE),
        (reserved(POD), [a_user("Succeeded")], Use.NONE),
        (reserved(POD), [a_user("Failed")], Use.NONE),
        (reserved(POD), [a_user(uid="uid-of-another")], Use.NONE),
        (reserved(POD), [], Use.NONE),
        (reserved(), [a_user()], Use.NONE),
        (reserved(POD, device="loop-bbbbbb"), [a_user()], Use.NONE),
        ({**reserved(POD), "status": {"reservedFor": [POD]}}, [a_user()], Use.NONE),
        (a_claim(a_reference(9, name=WANTED.name)), [a_user()], Use.NONE),
        (None, [a_user()], Use.NONE),
    ],
)
def test_who_uses_a_claim(
    found: Mapping[str, Any] | None, pods: list[Mapping[str, Any]], use: Use
) -> None:
    assert use_of(prepared(WANTED), found, pods) is use
