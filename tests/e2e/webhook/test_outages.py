"""The webhook is down, or not ready: what waits, and above all what does not."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

from kube.calls.api import ApiClient
from kube.kinds import CLASSES, PODS, QUEUES
from kube.objects import JsonObject
from kube.resources import ObjectPath
from local_cluster.api import Cluster
from tests.e2e.webhook.installation import NAMESPACE, WebhookProcess, filled_in
from tests.e2e.webhook.objects import (
    CLAIMS,
    OPEN,
    TEMPLATES,
    a_claim,
    a_new_class,
    a_pod,
    a_queue,
    a_template,
    allocated,
    asking,
    refusal,
)

USB = {"limits": {"akri.sh/usb": "1"}}


@pytest.fixture
def down(asked: WebhookProcess) -> Iterator[WebhookProcess]:
    asked.kill()
    yield asked
    asked.start()
    asked.wait_ready()


@pytest.fixture
async def stored(admin: ApiClient) -> dict[str, JsonObject]:
    """Objects that are there before the outage."""
    claim = await admin.create(CLAIMS["v1"], a_claim("open"))
    pod = a_pod(claims=[claim["metadata"]["name"]], queue="open")
    return {
        "claim": claim,
        "pod": await admin.create(PODS, pod),
        "queue": await admin.create(QUEUES, a_queue()),
    }


def path_of(obj: JsonObject, resource: Any, subresource: str = "") -> ObjectPath:
    path: ObjectPath = resource.path_of(obj, subresource)
    return path


async def test_what_it_should_have_judged_is_refused(
    stored: dict[str, JsonObject], down: WebhookProcess, admin: ApiClient
) -> None:
    claim = stored["claim"]["metadata"]["name"]
    queue = path_of(stored["queue"], QUEUES)
    writes = (
        admin.create(PODS, a_pod(resources=USB)),
        admin.create(PODS, a_pod(resources=USB, claims=[claim])),
        admin.create(CLAIMS["v1"], a_claim("open")),
        admin.create(TEMPLATES["v1"], a_template("open")),
        admin.create(CLAIMS["v1"], asking(a_claim(), "spec", "devices", mode="0660")),
        admin.create(TEMPLATES["v1"], asking(a_template(), "spec", "spec", "devices")),
        admin.create(CLASSES, asking(a_new_class(), "spec", mode="0660")),
        admin.create(QUEUES, a_queue()),
        admin.merge_patch(queue, {"spec": {"parent": "open"}}),
        admin.delete(queue),
    )

    for write in writes:
        assert "failed calling webhook" in (await refusal(write)).message


async def test_nothing_else_notices(
    stored: dict[str, JsonObject], down: WebhookProcess, admin: ApiClient
) -> None:
    claim, pod, queue = stored["claim"], stored["pod"], stored["queue"]

    # Pods, claims and templates that nobody accounts for.
    await admin.create(PODS, a_pod(queue="nobody", nodeName="node-a"))
    await admin.create(PODS, a_pod(resources={"limits": {"example.com/nic": "1", "cpu": "1"}}))
    await admin.create(PODS, a_pod(resources=USB, namespace="kube-system"))
    await admin.create(CLAIMS["v1"], a_claim())
    await admin.create(TEMPLATES["v1"], a_template())
    device_class = await admin.create(CLASSES, a_new_class())
    await admin.merge_patch(path_of(device_class, CLASSES), {"metadata": {"labels": {"a": "b"}}})
    # Whose devices a claim is about only a look at it could tell: others' users wait for nobody.
    used = {"limits": {"deviceclass.resource.kubernetes.io/gpu.example": "1"}}
    for pod_of_others in (
        a_pod(claims=["of-another-driver"], schedulerName="default-scheduler"),
        a_pod(claims=[claim["metadata"]["name"]], schedulerName="default-scheduler"),
        a_pod(resources=used, schedulerName="default-scheduler"),
    ):
        await admin.create(PODS, pod_of_others)
    # What happens to a claim while it is used.
    given = await admin.replace(path_of(claim, CLAIMS["v1"], "status"), allocated(claim))
    labels = {"metadata": {"labels": {"other": "label"}}}
    await admin.merge_patch(path_of(claim, CLAIMS["v1"]), labels)
    assert given["status"]["allocation"]
    # What happens to a pod that uses it, its binding first of all.
    node = {"apiVersion": "v1", "kind": "Node", "name": "node-a"}
    named = {"name": pod["metadata"]["name"], "namespace": OPEN}
    await admin.create(PODS, {"metadata": named, "target": node}, subresource="binding")
    await admin.merge_patch(path_of(pod, PODS, "status"), {"status": {"phase": "Failed"}})
    await admin.merge_patch(path_of(pod, PODS), labels)
    await admin.delete(path_of(pod, PODS))
    await admin.delete(path_of(claim, CLAIMS["v1"]))
    # Figures and labels of a Queue.
    await admin.merge_patch(path_of(queue, QUEUES, "status"), {"status": {"usage": {"onvif": 1}}})
    await admin.merge_patch(path_of(queue, QUEUES), labels)


async def test_after_a_restart_it_judges_again(
    asked: WebhookProcess, server: Cluster, admin: ApiClient
) -> None:
    assert asked.stop() == 0
    assert "failed calling webhook" in (await refusal(admin.create(QUEUES, a_queue()))).message
    asked.start()
    asked.wait_ready()

    refused = await refusal(admin.create(CLAIMS["v1"], a_claim("nobody")))

    assert 'Queue "nobody" does not exist.' in refused.message
    await admin.create(QUEUES, a_queue())


async def test_until_it_has_read_everything_the_failure_policy_decides(
    server: Cluster, asked: WebhookProcess, admin: ApiClient
) -> None:
    """This one may read nothing, so it never gets ready."""
    server.apply(
        {
            "apiVersion": "v1",
            "kind": "ServiceAccount",
            "metadata": {"name": "blind", "namespace": NAMESPACE},
        }
    )
    blind = WebhookProcess(server, account="blind")
    blind.start()
    try:
        server.wait_until("the process answers", lambda: blind.status("/healthz") == 200)
        assert blind.status("/readyz") == 503
        server.apply(filled_in(blind.certificate.ca, blind.url))
        server.wait_until("it is asked", lambda: _starting(server))
        refused = await refusal(admin.create(QUEUES, a_queue()))
        assert "failed calling webhook" in refused.message
    finally:
        blind.kill()
        server.apply(filled_in(asked.certificate.ca, asked.url))
    server.wait_until("the other one is asked again", lambda: not _starting(server))


def _starting(server: Cluster) -> bool:
    body = json.dumps(a_queue("probe"))
    answer = server.kubectl("create", "--dry-run=server", "-f", "-", stdin=body, check=False)
    return "failed calling webhook" in answer.stderr
