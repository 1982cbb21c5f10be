"""The comparison of rights with their use, with values instead of a cluster."""

from __future__ import annotations

from typing import Any

from tests.e2e.rights import UNSEEN, Right, asked, differences, granted, in_manifests

PODS, INSTANCES = "pods", "instances.akri.sh"


def an_entry(account: str, verb: str, program: str, **fields: Any) -> dict[str, Any]:
    place = {"resource": "pods", "subresource": "binding", "apiVersion": "v1"}
    return {
        "user": {"username": f"system:serviceaccount:moorage-system:{account}"},
        "userAgent": f"{program}/1",
        "verb": verb,
        "objectRef": place,
        "annotations": {"authorization.k8s.io/decision": "allow"},
        **fields,
    }


def test_only_what_a_program_of_ours_asks_for_counts() -> None:
    ours = an_entry("scheduler-plugin", "create", "moorage-scheduler-plugin")
    borrowed = an_entry("scheduler-plugin", "create", "kubectl")
    another = an_entry("default", "create", "moorage-scheduler-plugin")
    elsewhere = an_entry("webhook", "get", "moorage-webhook", objectRef={"name": "readyz"})

    assert asked(ours) == (Right("scheduler-plugin", "create", "pods/binding"), True)
    assert [asked(entry) for entry in (borrowed, another, elsewhere)] == [None] * 3


def test_an_account_of_a_story_stands_for_the_one_whose_roles_it_has() -> None:
    entry = an_entry("rotating", "update", "moorage-webhook", objectRef={"resource": "secrets"})

    assert asked(entry) == (Right("webhook", "update", "secrets"), True)


def test_a_refusal_is_a_use_without_a_right() -> None:
    grouped = {"resource": "queues", "apiGroup": "moorage.dev"}
    refused = {"authorization.k8s.io/decision": "forbid"}
    entry = an_entry("webhook", "patch", "moorage-webhook", objectRef=grouped, annotations=refused)

    assert asked(entry) == (Right("webhook", "patch", "queues.moorage.dev"), False)


def a_role(kind: str, *rules: dict[str, Any]) -> dict[str, Any]:
    return {"kind": kind, "metadata": {"name": "r"}, "rules": list(rules)}


def a_binding(kind: str, name: str = "r") -> dict[str, Any]:
    subject = {"kind": "ServiceAccount", "name": "driver-node", "namespace": "moorage-system"}
    reference = {"kind": kind, "name": name}
    return {"kind": f"{kind}Binding", "roleRef": reference, "subjects": [subject]}


def test_what_is_granted_is_what_bound_roles_say() -> None:
    rule = {"apiGroups": ["", "akri.sh"], "resources": ["pods", "pods/status"], "verbs": ["get"]}
    role = a_role("ClusterRole", rule)

    assert granted([role, a_binding("ClusterRole")]) == {
        Right("driver-node", "get", resource)
        for resource in ("pods", "pods/status", "pods.akri.sh", "pods/status.akri.sh")
    }
    assert granted([role]) == frozenset()
    assert granted([role, a_binding("Role"), a_binding("ClusterRole", "view")]) == frozenset()


def test_both_ways_are_told() -> None:
    reasons = dict.fromkeys(UNSEEN)
    used, idle = Right("webhook", "list", PODS), Right("webhook", "watch", PODS)
    missing = Right("driver-node", "patch", INSTANCES)

    seen = [(used, False), (used, True), (missing, False)]

    told = differences(frozenset({used, idle, *reasons}), seen)

    assert told == (
        ("webhook may watch pods, and no story uses it.",),
        ("driver-node tried to patch instances.akri.sh, and may not.",),
    )


def test_a_reason_for_a_right_that_is_gone_is_told() -> None:
    first, *others = UNSEEN

    (told,), _ = differences(frozenset(others), ())

    assert (
        told == f"{first.account} may {first.verb} {first.resource} no more; take its reason away."
    )


def test_each_reason_is_about_a_right_that_is_granted() -> None:
    assert in_manifests() >= UNSEEN.keys()
