"""How the webhook is registered: narrow, and closed when it fails."""

from __future__ import annotations

from typing import Any

import pytest
import yaml

from tests.deploy.documents import DEPLOY, MANIFESTS, objects_of_kind
from webhook.settings import REGISTRATION, SECRET

FOLDER = DEPLOY / "webhook"
VALIDATING: Any = yaml.safe_load((FOLDER / "validatingwebhookconfiguration.yaml").read_text())
MUTATING: Any = yaml.safe_load((FOLDER / "mutatingwebhookconfiguration.yaml").read_text())
ENTRIES = [*VALIDATING["webhooks"], *MUTATING["webhooks"]]
EACH = pytest.mark.parametrize("entry", ENTRIES, ids=lambda entry: entry["name"])


def test_nobody_applies_it_by_accident() -> None:
    assert FOLDER != MANIFESTS
    for template in (VALIDATING, MUTATING):
        assert objects_of_kind(template["kind"]) == []
        assert "caBundle" not in str(template)


SAID_EARLY = "pods-with-claims.webhook.moorage.dev"
ONLY_WARNED = "configurations.webhook.moorage.dev"


def test_what_only_it_could_stop_is_refused_when_it_is_down() -> None:
    policies = {entry["name"]: entry["failurePolicy"] for entry in ENTRIES}

    assert policies.pop(SAID_EARLY) == "Ignore"
    assert policies.pop(ONLY_WARNED) == "Ignore"
    assert {*policies.values()} == {"Fail"}


@EACH
def test_it_is_not_waited_for_in_vain(entry: Any) -> None:
    is_ignored = entry["name"] in (SAID_EARLY, ONLY_WARNED)
    assert entry["timeoutSeconds"] == (2 if is_ignored else 5)


def test_an_older_replica_refuses_nothing_that_is_only_warned_about() -> None:
    """It has no such path, and answers 404, which is ignored; it judges all under the others."""
    paths = {entry["name"]: entry["clientConfig"]["service"]["path"] for entry in ENTRIES}

    assert [name for name, path in paths.items() if path == "/warn"] == [ONLY_WARNED]


def test_a_configuration_is_looked_at_when_its_spec_is_new() -> None:
    (entry,) = (e for e in ENTRIES if e["name"] == ONLY_WARNED)
    (rule,) = entry["rules"]

    assert (rule["apiGroups"], rule["resources"]) == (["akri.sh"], ["configurations"])
    assert rule["operations"] == ["CREATE", "UPDATE"]
    (condition,) = entry["matchConditions"]
    assert "object.?spec != oldObject.?spec" in condition["expression"]


@EACH
def test_it_is_called_in_every_version_and_only_for_what_matters(entry: Any) -> None:
    assert entry["matchPolicy"] == "Equivalent"
    assert entry["sideEffects"] == "None"
    assert entry["matchConditions"]


@EACH
def test_no_subresource_and_no_wildcard_reaches_it(entry: Any) -> None:
    for rule in entry["rules"]:
        words = [*rule["apiGroups"], *rule["resources"], *rule["operations"], *rule["apiVersions"]]
        assert not [word for word in words if "*" in word or "/" in word]


@EACH
def test_it_calls_the_service_of_the_manifests(entry: Any) -> None:
    (service,) = (
        o for o in objects_of_kind("Service") if o["metadata"]["name"] == "moorage-webhook"
    )
    target = entry["clientConfig"]["service"]

    assert target["name"] == service["metadata"]["name"]
    assert target["namespace"] == service["metadata"]["namespace"]
    assert target["port"] == service["spec"]["ports"][0]["port"]


def test_only_pods_leave_out_namespaces_that_must_start_alone() -> None:
    selected = {
        entry["name"]: entry["namespaceSelector"]
        for entry in VALIDATING["webhooks"]
        if "namespaceSelector" in entry
    }

    assert list(selected) == ["pods.webhook.moorage.dev", SAID_EARLY]
    for selector in selected.values():
        (requirement,) = selector["matchExpressions"]
        assert requirement["operator"] == "NotIn"
        assert requirement["values"] == ["kube-system", "moorage-system"]


def test_a_namespace_opts_in_to_be_changed_but_not_those_that_must_start_alone() -> None:
    (entry,) = MUTATING["webhooks"]
    opted_in, kept_out = entry["namespaceSelector"]["matchExpressions"]

    assert opted_in == {"key": "moorage.dev/managed", "operator": "In", "values": ["true"]}
    pods, _ = (e for e in VALIDATING["webhooks"] if "namespaceSelector" in e)
    assert kept_out in pods["namespaceSelector"]["matchExpressions"]


def test_the_same_pods_are_changed_and_judged() -> None:
    """Else one would be sent where the other does not know it; the order of calls is no matter."""
    (changed,) = MUTATING["webhooks"]
    judged = [e for e in VALIDATING["webhooks"] if "namespaceSelector" in e]
    asks = changed["matchConditions"][-1]["expression"]

    for entry in judged:
        assert changed["rules"] == entry["rules"]
    for part in (
        "object.spec.?resourceClaims.orValue([]).size() > 0",
        "name.startsWith('deviceclass.resource.kubernetes.io/')",
        "name.startsWith('akri.sh/')",
        "name in []",
    ):
        assert part in asks
        assert any(part in e["matchConditions"][0]["expression"] for e in judged)
    assert changed["reinvocationPolicy"] == "IfNeeded"


def test_the_webhook_may_read_and_write_its_own_registrations() -> None:
    (role,) = (
        o for o in objects_of_kind("ClusterRole") if o["metadata"]["name"] == "moorage-webhook"
    )
    *reads, registrations = role["rules"]

    for rule in reads:
        assert {"list", "watch"} <= {*rule["verbs"]} <= {"get", "list", "watch"}
        assert not {"secrets", "pods", "configmaps"} & {*rule["resources"]}
    assert registrations["verbs"] == ["get", "list", "watch", "patch"]
    assert registrations["resourceNames"] == [VALIDATING["metadata"]["name"]]
    assert VALIDATING["metadata"]["name"] == MUTATING["metadata"]["name"] == REGISTRATION


def test_the_webhook_may_write_the_secret_of_its_certificate() -> None:
    (role,) = (o for o in objects_of_kind("Role") if o["metadata"]["name"] == "moorage-webhook")
    kept, made, shown = role["rules"]

    assert role["metadata"]["namespace"] == SECRET[0]
    assert kept["resources"] == made["resources"] == ["secrets"]
    assert kept["resourceNames"] == [SECRET[1]]
    assert kept["verbs"] == ["get", "list", "watch", "update"]
    assert made["verbs"] == ["create"]
    assert (shown["resources"], shown["verbs"]) == (["configmaps"], ["get", "patch"])
    assert shown["resourceNames"] == [f"{SECRET[1]}-ca"]
