"""New pods of a namespace that opted in, and of namespaces that cannot."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from kube.calls.api import ApiClient
from kube.kinds import PODS
from kube.objects import JsonObject
from local_cluster.api import Cluster
from tests.e2e.webhook.installation import WebhookProcess
from tests.e2e.webhook.objects import (
    CLAIMS,
    MANAGED,
    MANAGED_LABEL,
    OPEN,
    QUEUE_LABEL,
    TEMPLATES,
    a_claim,
    a_pod,
    a_template,
    refusal,
)

GATE = "moorage.dev/quota"
GATES = [{"name": GATE}]
USB = {"limits": {"akri.sh/usb": "1"}}


@pytest.fixture(scope="module", autouse=True)
def changes_pods(server: Cluster, asked: WebhookProcess) -> None:
    """The API server may take the two registrations up in any order."""
    with server.api() as api:
        path = f"/api/v1/namespaces/{MANAGED}/pods?dryRun=All"
        server.wait_until(
            "new pods are changed",
            lambda: "schedulingGates" in api.create(path, a_new_pod(resources=USB))["spec"],
        )


def a_new_pod(*, namespace: str = MANAGED, **options: Any) -> dict[str, Any]:
    """A pod whose author never heard of schedulers."""
    body = a_pod(namespace=namespace, **options)
    if "schedulerName" not in options:
        del body["spec"]["schedulerName"]
    return body


async def made(admin: ApiClient, body: dict[str, Any]) -> JsonObject:
    created: JsonObject = await admin.create(PODS, body)
    return created


async def a_stored(admin: ApiClient, device_class: str = "onvif") -> str:
    body = a_claim(device_class=device_class, namespace=MANAGED)
    await admin.create(CLAIMS["v1"], body)
    return str(body["metadata"]["name"])


async def test_a_pod_like_any_other_waits_at_the_gate_of_our_scheduler(admin: ApiClient) -> None:
    template = a_template(namespace=MANAGED)
    await admin.create(TEMPLATES["v1"], template)
    asking: list[dict[str, Any]] = [
        {"claims": [await a_stored(admin)]},
        {"templates": [template["metadata"]["name"]]},
        {"resources": USB},
        {"claims": ["later"]},
        {"resources": {"limits": {"akri.sh/later": "1"}}},
    ]

    for options in asking:
        pod = await made(admin, a_new_pod(**options))

        assert pod["spec"]["schedulerName"] == "moorage", options
        assert pod["spec"]["schedulingGates"] == GATES, options
        assert pod["metadata"]["labels"] == {QUEUE_LABEL: "open"}, options


async def test_what_a_pod_says_itself_stays(admin: ApiClient) -> None:
    body = a_new_pod(
        claims=[await a_stored(admin)],
        queue="unnamed",
        schedulerName="moorage",
        schedulingGates=[{"name": "example.com/other"}, *GATES],
    )

    pod = await made(admin, body)

    assert pod["metadata"]["labels"] == {QUEUE_LABEL: "unnamed"}
    assert pod["spec"]["schedulerName"] == "moorage"
    assert [gate["name"] for gate in pod["spec"]["schedulingGates"]] == ["example.com/other", GATE]


async def test_a_pod_of_a_group_keeps_the_queue_of_its_group(admin: ApiClient) -> None:
    body = a_new_pod(claims=[await a_stored(admin)])
    body["metadata"]["annotations"] = {"pod-group-name": "train"}

    pod = await made(admin, body)

    assert "labels" not in pod["metadata"]
    assert pod["spec"]["schedulingGates"] == GATES


async def test_pods_that_nobody_counts_are_left_alone(admin: ApiClient) -> None:
    """And what is refused elsewhere is refused here."""
    accounted = await a_stored(admin)
    free: list[dict[str, Any]] = [
        {},
        {"claims": [await a_stored(admin, "nic")]},
        {"resources": {"limits": {"example.com/nic": "1"}}},
    ]

    for options in free:
        pod = await made(admin, a_new_pod(**options))
        assert pod["spec"]["schedulerName"] == "default-scheduler", options
        assert "schedulingGates" not in pod["spec"], options
    for elsewhere, fields in (
        ({"schedulerName": "volcano"}, ("spec.schedulerName",)),
        ({"nodeName": "node-a"}, ("spec.nodeName", "spec.schedulerName")),
    ):
        refused = await refusal(admin.create(PODS, a_new_pod(claims=[accounted], **elsewhere)))
        assert refused.fields == fields


async def test_other_namespaces_are_left_alone_and_some_cannot_opt_in(
    server: Cluster, admin: ApiClient
) -> None:
    refused = await refusal(admin.create(PODS, a_new_pod(resources=USB, namespace=OPEN)))
    assert refused.fields == ("spec.schedulerName",)
    server.kubectl("label", "namespace", "kube-system", f"{MANAGED_LABEL}=true")
    try:
        pod = await made(admin, a_new_pod(resources=USB, namespace="kube-system"))
    finally:
        server.kubectl("label", "namespace", "kube-system", f"{MANAGED_LABEL}-")
    assert pod["spec"]["schedulerName"] == "default-scheduler"


@pytest.fixture
def down(asked: WebhookProcess) -> Iterator[WebhookProcess]:
    """It does not run; afterwards it does, with the flags of all stories."""
    asked.kill()
    yield asked
    asked.kill()
    asked.start()
    asked.wait_ready()


async def test_while_it_is_down_only_pods_that_ask_for_devices_are_refused(
    down: WebhookProcess, admin: ApiClient
) -> None:
    refused = await refusal(admin.create(PODS, a_new_pod(claims=["later"])))
    plain = await made(admin, a_new_pod())

    assert 'failed calling webhook "new-pods.webhook.moorage.dev"' in refused.message
    assert plain["spec"]["schedulerName"] == "default-scheduler"
    # Somebody may prefer that pods are tried again, and keep another scheduler beside ours.
    down.start("--hold=Retry", "--other-schedulers=Allow")
    down.wait_ready()
    tried = await made(admin, a_new_pod(claims=["later"]))
    other = await made(admin, a_new_pod(resources=USB, schedulerName="volcano"))
    assert tried["spec"]["schedulerName"] == "moorage"
    assert "schedulingGates" not in tried["spec"]
    assert tried["metadata"]["labels"] == {QUEUE_LABEL: "open"}
    assert other["spec"]["schedulerName"] == "volcano"
    assert "labels" not in other["metadata"]
