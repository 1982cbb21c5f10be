"""Pods that would get at accounted devices past the scheduler that accounts."""

from __future__ import annotations

import json
from typing import Any

import pytest

from kube.calls.api import ApiClient
from kube.kinds import NODES, PODS
from local_cluster.api import Cluster
from tests.e2e.webhook.installation import WebhookProcess
from tests.e2e.webhook.objects import (
    CLAIMS,
    CLOSED,
    LABEL_PATH,
    OPEN,
    TEMPLATES,
    a_claim,
    a_pod,
    a_template,
    new_name,
    refusal,
    warnings_of,
)

RESOURCES = ("akri.sh/usb", "deviceclass.resource.kubernetes.io/onvif")
EACH_RESOURCE = pytest.mark.parametrize("resource", RESOURCES)
ELSEWHERE: dict[str, Any] = {"schedulerName": "default-scheduler"}


async def a_stored(admin: ApiClient, device_class: str = "onvif", namespace: str = OPEN) -> str:
    body = a_claim(device_class=device_class, namespace=namespace)
    await admin.create(CLAIMS["v1"], body)
    return str(body["metadata"]["name"])


async def test_a_pod_of_moorage_may_use_an_accounted_claim(admin: ApiClient) -> None:
    await admin.create(PODS, a_pod(claims=[await a_stored(admin)], queue="open"))


async def test_a_pod_of_another_scheduler_may_not(admin: ApiClient) -> None:
    name = await a_stored(admin)

    refused = await refusal(admin.create(PODS, a_pod(claims=[name], **ELSEWHERE)))

    assert refused.fields == ("spec.schedulerName",)
    assert f"ResourceClaim {OPEN}/{name}" in refused.message
    assert 'scheduler "default-scheduler"' in refused.message


async def test_nor_one_whose_node_was_chosen_beforehand(admin: ApiClient) -> None:
    body = a_pod(claims=[await a_stored(admin)], nodeName="node-a")

    assert (await refusal(admin.create(PODS, body))).fields == ("spec.nodeName",)


async def test_claims_that_nobody_counts_go_anywhere(admin: ApiClient) -> None:
    name = await a_stored(admin, "nic")

    await admin.create(PODS, a_pod(claims=[name], nodeName="node-a", **ELSEWHERE))


async def test_a_template_counts_as_its_claims_will(admin: ApiClient) -> None:
    template = a_template()
    await admin.create(TEMPLATES["v1"], template)
    name = template["metadata"]["name"]

    refused = await refusal(admin.create(PODS, a_pod(templates=[name], **ELSEWHERE)))

    assert f"ResourceClaimTemplate {OPEN}/{name}" in refused.message


async def test_a_claim_or_template_that_is_not_there_yet_is_admitted(admin: ApiClient) -> None:
    body = a_pod(claims=["later"], templates=["later"], nodeName="node-a", **ELSEWHERE)

    await admin.create(PODS, body)


@EACH_RESOURCE
@pytest.mark.parametrize("where", ["containers", "initContainers"])
async def test_accounted_resources_count_as_claims_do(
    resource: str, where: str, admin: ApiClient
) -> None:
    container: dict[str, Any] = {
        "name": "asks",
        "image": "none",
        "resources": {"limits": {resource: "1"}},
    }
    plain = {"name": "main", "image": "none"}
    spec: dict[str, Any] = {"containers": [plain]}
    spec[where] = [container]

    refused = await refusal(admin.create(PODS, a_pod(**spec, **ELSEWHERE)))

    assert refused.fields == ("spec.schedulerName",), refused
    assert f"resource {resource}:" in refused.message
    await admin.create(PODS, a_pod(**spec))


async def test_a_resource_that_the_registration_does_not_list_is_not_asked_about(
    admin: ApiClient,
) -> None:
    """An administrator lists the extended resources of accounted classes; none are by default."""
    limits = {"limits": {"example.com/gpu": "1"}}

    await admin.create(PODS, a_pod(resources=limits, **ELSEWHERE))


async def test_a_resource_that_it_lists_is(server: Cluster, admin: ApiClient) -> None:
    path = "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations/moorage"
    limits = {"limits": {"example.com/gpu": "1"}}
    with server.api() as api:
        before = api.get(path)
        listing = json.loads(
            json.dumps(before).replace("name in []", "name in ['example.com/gpu']")
        )
        api.request("PUT", path, listing)
        try:
            body = a_pod(resources=limits, **ELSEWHERE)
            server.wait_until(
                "the list is in force",
                lambda: (
                    "resource example.com/gpu"
                    in warnings_of(server, "create", "--dry-run=server", "-f", "-", body=body)
                ),
            )
        finally:
            fresh = api.get(path)
            api.request("PUT", path, {**fresh, "webhooks": before["webhooks"]})


async def test_the_queue_of_a_pod_with_claims_must_exist_and_admit_it(admin: ApiClient) -> None:
    ours, theirs = await a_stored(admin), await a_stored(admin, namespace=CLOSED)

    unknown = await refusal(admin.create(PODS, a_pod(claims=[ours], queue="nobody")))
    closed = await refusal(
        admin.create(PODS, a_pod(claims=[theirs], queue="picky", namespace=CLOSED))
    )

    assert (unknown.fields, closed.fields) == ((LABEL_PATH,), (LABEL_PATH,))
    assert 'Queue "nobody" does not exist.' in unknown.message
    assert f'Namespace "{CLOSED}" may not use queue "picky".' in closed.message
    await admin.create(PODS, a_pod(claims=[ours], queue="picky"))


async def test_a_pod_may_name_a_queue_that_minds_being_named_on_claims(admin: ApiClient) -> None:
    await admin.create(PODS, a_pod(claims=[await a_stored(admin)], queue="unnamed"))


async def test_a_pod_without_devices_may_say_what_it_likes(admin: ApiClient) -> None:
    await admin.create(PODS, a_pod(queue="nobody", nodeName="node-a", **ELSEWHERE))


async def test_all_that_is_wrong_is_said_at_once(admin: ApiClient) -> None:
    body = a_pod(claims=[await a_stored(admin)], queue="nobody", nodeName="node-a", **ELSEWHERE)

    refused = await refusal(admin.create(PODS, body))

    assert refused.fields == ("spec.nodeName", "spec.schedulerName", LABEL_PATH)


async def test_a_static_pod_that_a_kubelet_shows_is_warned_about(
    server: Cluster, admin: ApiClient
) -> None:
    node_name = new_name("node")
    node = await admin.create(
        NODES, {"apiVersion": "v1", "kind": "Node", "metadata": {"name": node_name}}
    )
    body = a_pod(resources={"limits": {"akri.sh/usb": "1"}}, nodeName=node_name)
    body["metadata"]["annotations"] = {"kubernetes.io/config.mirror": "hash"}
    body["metadata"]["ownerReferences"] = [
        {
            "apiVersion": "v1",
            "kind": "Node",
            "name": node_name,
            "uid": node["metadata"]["uid"],
            "controller": True,
        }
    ]
    kubelet = (f"--as=system:node:{node_name}", "--as-group=system:nodes")
    create = ("create", "--dry-run=server", "-f", "-")

    shown = warnings_of(server, *kubelet, *create, body=body)
    forged = warnings_of(server, *create, body=body)

    assert shown.startswith("Warning: It is a static pod and runs in any case")
    assert "spec.nodeName: resource akri.sh/usb" in shown
    assert "is invalid: spec.nodeName: resource akri.sh/usb" in forged


async def test_pods_of_the_system_are_never_asked_about(
    asked: WebhookProcess, admin: ApiClient
) -> None:
    limits = {"limits": {"akri.sh/usb": "1"}}

    await admin.create(PODS, a_pod(resources=limits, namespace="kube-system", **ELSEWHERE))
