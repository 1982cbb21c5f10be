"""The admission policies: bound, closed on failure, and agreed about the settings."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from scheduler_plugin.objects.names import (
    CHARGED_ANNOTATION,
    OWNER_LEFT_AT_ANNOTATION,
    OWNER_POD_ANNOTATION,
)
from tests.deploy.documents import DEPLOY, MANIFESTS, documents_in

FILES = documents_in(DEPLOY / "policies")
BINDER = "system:serviceaccount:moorage-system:scheduler-plugin"
SCHEDULER = "system:serviceaccount:moorage-system:scheduler"
SETTINGS = {
    "queueLabel": "'moorage.dev/queue'",
    "binder": f"'{BINDER}'",
    "schedulers": f"['{SCHEDULER}']",
    "accountedDrivers": "['moorage.dev']",
    "accountedResources": "[]",
}
PREEMPTIBILITY = ("moorage.dev/preemptibility", "kai.scheduler/preemptibility")
RESOURCE_VERSIONS = ["v1", "v1beta2", "v1beta1"]


def objects_of_kind(kind: str, files: Mapping[Path, list[Any]] = FILES) -> dict[str, Any]:
    found = (document for documents in files.values() for document in documents)
    return {doc["metadata"]["name"]: doc["spec"] for doc in found if doc["kind"] == kind}


POLICIES = objects_of_kind("ValidatingAdmissionPolicy")
EACH_POLICY = pytest.mark.parametrize("name", POLICIES)


def variables(name: str) -> dict[str, str]:
    return {entry["name"]: entry["expression"] for entry in POLICIES[name].get("variables", ())}


def matched(name: str) -> set[tuple[str, str]]:
    """Operation and resource of each request that the policy is asked about."""
    return {
        (operation, resource)
        for rule in POLICIES[name]["matchConstraints"]["resourceRules"]
        for operation in rule["operations"]
        for resource in rule["resources"]
    }


def test_each_policy_is_bound_once_to_everything_and_denies() -> None:
    """Those about the driver's accounts, too."""
    files = FILES | documents_in(MANIFESTS)
    policies = objects_of_kind("ValidatingAdmissionPolicy", files)

    assert objects_of_kind("ValidatingAdmissionPolicyBinding", files) == {
        name: {"policyName": name, "validationActions": ["Deny"]} for name in policies
    }


@EACH_POLICY
def test_what_cannot_be_judged_is_refused(name: str) -> None:
    assert POLICIES[name]["failurePolicy"] == "Fail"


@EACH_POLICY
def test_no_object_has_to_exist_for_it(name: str) -> None:
    """Were parameters missing, no kubelet could report a status."""
    assert "paramKind" not in POLICIES[name]


@EACH_POLICY
def test_settings_are_the_same_in_all(name: str) -> None:
    found = {key: text for key, text in variables(name).items() if key in SETTINGS}

    assert found.items() <= SETTINGS.items()
    others = [text for key, text in variables(name).items() if key not in SETTINGS]
    expressions = [*others, *(entry["expression"] for entry in POLICIES[name]["validations"])]
    assert not [text for text in expressions if BINDER in text or SCHEDULER in text]


@EACH_POLICY
def test_each_refusal_is_a_sentence_even_where_it_cannot_be_composed(name: str) -> None:
    for validation in POLICIES[name]["validations"]:
        assert validation["message"].endswith(".")
        assert validation["messageExpression"].endswith(".'")


def test_claims_are_protected_in_all_versions_of_their_api() -> None:
    names = (
        "moorage-claims",
        "moorage-claim-templates",
        "moorage-scheduler-plugin-claims",
        "moorage-scheduler-plugin-owners",
        "moorage-allocations",
    )
    for name in names:
        (rule,) = POLICIES[name]["matchConstraints"]["resourceRules"]
        assert rule["apiVersions"] == RESOURCE_VERSIONS


def test_each_request_has_its_policy() -> None:
    assert matched("moorage-claims") == {
        ("CREATE", "resourceclaims"),
        ("UPDATE", "resourceclaims"),
    }
    assert matched("moorage-claim-templates") == {("CREATE", "resourceclaimtemplates")}
    assert matched("moorage-pods") == {
        ("CREATE", "pods"),
        ("UPDATE", "pods"),
        ("UPDATE", "pods/*"),
    }
    assert matched("moorage-placed-pods") == {("CREATE", "pods")}
    assert matched("moorage-allocations") == {("UPDATE", "resourceclaims/status")}
    assert matched("moorage-bindings") == {("CREATE", "pods/binding"), ("CREATE", "bindings")}
    assert matched("moorage-scheduler-plugin-pods") == {("*", "pods"), ("*", "pods/*")}
    assert matched("moorage-scheduler-plugin-claims") == {("UPDATE", "resourceclaims/status")}
    assert matched("moorage-scheduler-plugin-owners") == {("*", "resourceclaims")}
    assert matched("moorage-scheduler-plugin-queues") == {("*", "queues")}
    assert ("UPDATE", "podgroups") in matched("moorage-podgroups")


def test_both_preemptibility_labels_are_protected() -> None:
    for key in PREEMPTIBILITY:
        assert f"'{key}'" in variables("moorage-pods")["protectedLabels"]
        assert f"'{key}'" in variables("moorage-bindings")["protectedKeys"]


def test_owner_annotations_are_the_same_on_claims_and_in_templates() -> None:
    claims, templates, plugin = (
        variables(name)["ownerAnnotations"]
        for name in (
            "moorage-claims",
            "moorage-claim-templates",
            "moorage-scheduler-plugin-owners",
        )
    )

    written = [OWNER_POD_ANNOTATION, OWNER_LEFT_AT_ANNOTATION, CHARGED_ANNOTATION]
    assert claims == templates == plugin == str(written)


def test_the_scheduler_plugin_is_the_binder() -> None:
    """They are one process, so the policies about it must be about the same account."""
    for what in ("pods", "claims", "owners", "queues"):
        name = f"moorage-scheduler-plugin-{what}"
        conditions = POLICIES[name]["matchConditions"]

        assert conditions[0]["expression"] == f"request.userInfo.username == '{BINDER}'"


def test_the_binding_that_may_be_left_out_stands_alone() -> None:
    """Where pods of other schedulers may have accounted devices, that file is not applied."""
    (binding,) = FILES[DEPLOY / "policies" / "allocations-policybinding.yaml"]

    assert binding["spec"]["policyName"] == "moorage-allocations"


def test_only_the_account_of_the_scheduler_in_the_manifests_allocates() -> None:
    documents = documents_in(DEPLOY / "manifests").values()
    secrets = [d for found in documents for d in found if d["kind"] == "Secret"]
    (token,) = [s for s in secrets if s["metadata"]["name"] == "moorage-scheduler-token"]
    account = token["metadata"]["annotations"]["kubernetes.io/service-account.name"]

    assert f"system:serviceaccount:{token['metadata']['namespace']}:{account}" == SCHEDULER
