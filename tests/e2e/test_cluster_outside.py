"""The local cluster calls what runs on the host: webhooks and scheduler extenders."""

from __future__ import annotations

import base64
from typing import Any

import pytest

from local_cluster.api import Certificate, Cluster, KubectlError
from tests.e2e.listeners import listening
from tests.e2e.test_cluster_pods import a_pod


def refusing_webhook(url: str, certificate: Certificate, namespace: str) -> dict[str, Any]:
    selector = {"matchLabels": {"kubernetes.io/metadata.name": namespace}}
    rule = {
        "apiGroups": [""],
        "apiVersions": ["v1"],
        "operations": ["CREATE"],
        "resources": ["configmaps"],
    }
    ca = base64.b64encode(certificate.ca.read_bytes()).decode()
    webhook = {
        "name": "refuse.moorage.test",
        "admissionReviewVersions": ["v1"],
        "clientConfig": {"url": f"{url}/review", "caBundle": ca},
        "namespaceSelector": selector,
        "rules": [rule],
        "sideEffects": "None",
    }
    return {
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": "ValidatingWebhookConfiguration",
        "metadata": {"name": namespace},
        "webhooks": [webhook],
    }


def test_api_server_asks_a_webhook_on_the_host(cluster: Cluster, namespace: str) -> None:
    def answer(_path: str, review: dict[str, Any]) -> dict[str, Any]:
        status = {"message": "refused by the test", "code": 403}
        response = {"uid": review["request"]["uid"], "allowed": False, "status": status}
        return {"apiVersion": review["apiVersion"], "kind": review["kind"], "response": response}

    certificate = cluster.issue_certificate("webhook-of-the-test")
    with listening(cluster.host_address, answer, certificate) as url:
        cluster.apply(refusing_webhook(url, certificate, namespace))
        try:
            error = cluster.wait_until("the webhook refuses", lambda: refusal(cluster, namespace))
        finally:
            cluster.kubectl("delete", "validatingwebhookconfiguration", namespace)

    assert "refused by the test" in error


def refusal(cluster: Cluster, namespace: str) -> str | None:
    """The API server learns of a new webhook a moment after it was stored."""
    try:
        cluster.kubectl("create", "configmap", "any", "-n", namespace, "--dry-run=server")
    except KubectlError as error:
        return str(error)
    return None


@pytest.fixture
def asked() -> list[str]:
    """Names of the pods that the extender was asked about."""
    return []


def test_second_scheduler_asks_the_extender_of_its_overlay(
    cluster: Cluster, namespace: str, asked: list[str]
) -> None:
    def answer(_path: str, request: dict[str, Any]) -> dict[str, Any]:
        asked.append(request["Pod"]["metadata"]["name"])
        return {"NodeNames": [name for name in request["NodeNames"] if name == "node-b"]}

    with listening(cluster.host_address, answer) as url:
        extender = {"urlPrefix": url, "filterVerb": "filter", "nodeCacheCapable": True}
        with cluster.reconfigured(scheduler_overlay={"extenders": [extender]}):
            pods = [
                a_pod("extended", "sleep", "1000", schedulerName="moorage"),
                a_pod("plain", "sleep", "1000"),
            ]
            cluster.apply(pods, namespace=namespace)
            cluster.wait("pod/extended", "condition=Ready", namespace=namespace)
            cluster.wait("pod/plain", "condition=Ready", namespace=namespace)

    found = cluster.get("pod", "extended", namespace=namespace)
    assert found is not None
    assert found["spec"]["nodeName"] == "node-b"
    assert set(asked) == {"extended"}
