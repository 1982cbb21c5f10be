"""How the webhook is registered: narrow, closed when it fails, and filled in by installers."""

from __future__ import annotations

from base64 import b64decode
from typing import Any

import pytest
import yaml

from tests.deploy.documents import DEPLOY, MANIFESTS, objects_of_kind
from webhook.api import registration

FILE = DEPLOY / "webhook/validatingwebhookconfiguration.yaml"
TEMPLATE: Any = yaml.safe_load(FILE.read_text())
EACH = pytest.mark.parametrize("entry", TEMPLATE["webhooks"], ids=lambda entry: entry["name"])


def test_installers_fill_in_the_authority() -> None:
    filled = registration(TEMPLATE, b"-----BEGIN CERTIFICATE-----")

    for before, after in zip(TEMPLATE["webhooks"], filled["webhooks"], strict=True):
        config = after["clientConfig"]
        assert b64decode(config.pop("caBundle")) == b"-----BEGIN CERTIFICATE-----"
        assert after == before


def test_a_process_outside_the_cluster_is_called_by_its_address() -> None:
    filled = registration(TEMPLATE, b"ca", base_url="https://10.0.0.1:9443")

    for entry in filled["webhooks"]:
        assert entry["clientConfig"].keys() == {"url", "caBundle"}
        assert entry["clientConfig"]["url"] == "https://10.0.0.1:9443/validate"


def test_nobody_applies_it_by_accident() -> None:
    assert FILE.parent != MANIFESTS
    assert objects_of_kind("ValidatingWebhookConfiguration") == []
    assert "caBundle" not in str(TEMPLATE)


@EACH
def test_what_it_should_have_judged_is_refused_when_it_is_down(entry: Any) -> None:
    assert entry["failurePolicy"] == "Fail"
    assert entry["matchPolicy"] == "Equivalent"
    assert entry["sideEffects"] == "None"
    assert entry["timeoutSeconds"] == 5
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
        for entry in TEMPLATE["webhooks"]
        if "namespaceSelector" in entry
    }

    assert list(selected) == ["pods.webhook.moorage.dev"]
    (requirement,) = selected["pods.webhook.moorage.dev"]["matchExpressions"]
    assert requirement["operator"] == "NotIn"
    assert requirement["values"] == ["kube-system", "moorage-system"]


def test_the_webhook_may_read_and_nothing_else() -> None:
    (role,) = (
        o for o in objects_of_kind("ClusterRole") if o["metadata"]["name"] == "moorage-webhook"
    )

    for rule in role["rules"]:
        assert rule["verbs"] == ["get", "list", "watch"]
        assert not {"secrets", "pods", "configmaps"} & {*rule["resources"]}
