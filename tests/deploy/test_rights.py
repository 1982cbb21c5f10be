"""The comparison of rights with their use, with values instead of a cluster."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.e2e import rights
from tests.e2e.rights import (
    BROKERS,
    ELSEWHERE,
    UNSEEN,
    Right,
    asked,
    differences,
    granted,
    in_manifests,
    unlogged,
)

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

    assert asked(ours) == ((Right("scheduler-plugin", "create", "pods/binding"), True),)
    assert [asked(entry) for entry in (borrowed, another, elsewhere)] == [()] * 3


def test_an_account_of_a_story_stands_for_the_one_whose_roles_it_has() -> None:
    entry = an_entry("rotating", "update", "moorage-webhook", objectRef={"resource": "secrets"})

    assert asked(entry) == ((Right("webhook", "update", "secrets"), True),)


def test_a_refusal_is_a_use_without_a_right() -> None:
    grouped = {"resource": "queues", "apiGroup": "moorage.dev"}
    refused = {"authorization.k8s.io/decision": "forbid"}
    entry = an_entry("webhook", "patch", "moorage-webhook", objectRef=grouped, annotations=refused)

    assert asked(entry) == ((Right("webhook", "patch", "queues.moorage.dev"), False),)


@pytest.mark.parametrize(("decision", "may"), [("allow", True), ("forbid", False)])
def test_what_is_asked_in_the_name_of_another_account_is_a_right_of_that_account(
    decision: str, may: bool
) -> None:
    """Without the right to act as it the API server names no such user."""
    entry = an_entry(
        "driver-shared",
        "create",
        "moorage-driver-shared",
        objectRef={"resource": "jobs", "apiGroup": "batch"},
        impersonatedUser={"username": "system:serviceaccount:lab:moorage-brokers"},
        annotations={"authorization.k8s.io/decision": decision},
    )

    assert asked(entry) == (
        (Right("driver-shared", "impersonate", "serviceaccounts"), True),
        (Right("moorage-brokers", "create", "jobs.batch"), may),
    )


def test_somebody_who_acts_as_an_account_of_ours_uses_no_right_of_it() -> None:
    ours = {"username": "system:serviceaccount:moorage-system:driver-shared"}
    entry = an_entry("x", "create", "kubectl", user={"username": "admin"}, impersonatedUser=ours)

    assert asked(entry) == ()


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


def test_logs_that_tell_of_no_refusal_are_not_believed() -> None:
    expected, other = next(iter(ELSEWHERE)), Right("webhook", "list", PODS)

    assert unlogged([(expected, False), (other, True)]) == ()
    assert unlogged([(expected, True), (other, False)]) != ()
    assert unlogged([]) != ()


@pytest.mark.parametrize(("more", "status"), [(None, 0), ((Right("leave", "get", PODS), False), 1)])
def test_what_differs_fails_the_comparison(
    more: tuple[Right, bool] | None,
    status: int,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """All rights are used, and of what is refused one thing is no surprise."""
    may = frozenset(UNSEEN)
    monkeypatch.setattr(rights, "in_release", lambda: may)
    seen = [(right, True) for right in may] + [(next(iter(ELSEWHERE)), False)]
    rows = [[*right, is_granted] for right, is_granted in [*seen, *([more] if more else [])]]
    (tmp_path / "one.json").write_text(json.dumps(rows))

    assert rights.main(tmp_path) == status
    assert bool(capsys.readouterr().out) == bool(status)


def test_clusters_in_folders_of_one_name_are_noted_beside_each_other(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(rights.FOLDER, str(tmp_path / "rights"))
    entry = {
        "user": {"username": f"{rights.SYSTEM}leave"},
        "userAgent": "moorage-leave",
        "objectRef": {"resource": "instances", "apiGroup": "akri.sh"},
    }
    for place, verb in (("one/cluster", "list"), ("two/.cluster", "patch")):
        logs = tmp_path / place / "logs"
        logs.mkdir(parents=True)
        (logs / "audit.log").write_text(json.dumps(entry | {"verb": verb}) + "\n")

        rights.note(logs)

    noted = [json.loads(file.read_text()) for file in (tmp_path / "rights").iterdir()]
    assert sorted(row[1] for (row,) in noted) == ["list", "patch"]


def test_a_run_without_logs_fails_the_comparison(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(rights, "in_release", lambda: frozenset(UNSEEN))

    assert rights.main(tmp_path) == 1


def test_a_reason_for_a_right_that_is_gone_is_told() -> None:
    first, *others = UNSEEN

    (told,), _ = differences(frozenset(others), ())

    assert (
        told == f"{first.account} may {first.verb} {first.resource} no more; take its reason away."
    )


def test_each_reason_is_about_a_right_that_is_granted() -> None:
    """Those of brokers only the chart grants: `tests/e2e/test_chart_brokers.py`."""
    assert in_manifests() >= {right for right in UNSEEN if right.account != BROKERS}
