"""Configurations on the API server: who writes one is warned, and nothing ever stops it."""

from __future__ import annotations

from typing import Any

from kube.calls.api import ApiClient
from kube.kinds import CONFIGURATIONS
from local_cluster.api import Cluster
from tests.e2e.webhook.installation import WebhookProcess
from tests.e2e.webhook.objects import OPEN, new_name, warnings_of

APPLY = ("apply", "-f", "-")
UDEV = """udevRules: ['KERNEL=="video[0-9]*"']"""


def a_configuration(handler: str = "udev", details: str = UDEV, **spec: Any) -> dict[str, Any]:
    return {
        "apiVersion": CONFIGURATIONS.api_version,
        "kind": "Configuration",
        "metadata": {"name": new_name("camera"), "namespace": OPEN},
        "spec": {"discoveryHandler": {"name": handler, "discoveryDetails": details}, **spec},
    }


async def test_what_the_driver_will_not_accept_is_a_warning(
    server: Cluster, admin: ApiClient
) -> None:
    fine, odd = a_configuration(capacity=2), a_configuration(details="udevRule: []", capacity=0)

    assert warnings_of(server, *APPLY, body=fine) == ""
    said = warnings_of(server, *APPLY, body=odd)

    assert "Warning: spec.capacity: 0 is not a number from 1 to 1024." in said
    assert "Warning: spec.discoveryHandler.discoveryDetails.udevRule: Line 1, column 1:" in said
    stored = await admin.get(CONFIGURATIONS.at(odd["metadata"]["name"], OPEN))
    assert stored["spec"]["capacity"] == 0


async def test_a_handler_that_no_node_reports_is_a_warning_until_one_serves(
    server: Cluster, admin: ApiClient
) -> None:
    handler = new_name("barcode")
    body = a_configuration(handler, "")

    early = warnings_of(server, *APPLY, body=body)
    path = CONFIGURATIONS.at(body["metadata"]["name"], OPEN, "status")
    accepted = {
        "type": "Accepted",
        "status": "True",
        "reason": "Valid",
        "message": "",
        "lastTransitionTime": "2026-01-02T03:04:05Z",
    }
    await admin.merge_patch(path, {"status": {"conditions": [accepted]}})
    body["spec"]["capacity"] = 2
    later = warnings_of(server, *APPLY, body=body)
    entry = {"name": "node-a", "handler": "Active", "message": "One device has no place."}
    await admin.merge_patch(path, {"status": {"nodes": [entry]}})

    for said in (early, later):
        assert f'No node reports a discovery handler "{handler}" yet.' in said
    another = ("create", "--dry-run=server", "-f", "-")
    server.wait_until(
        "the handler is known",
        lambda: warnings_of(server, *another, body=a_configuration(handler, "")) == "",
    )


async def test_while_the_webhook_is_down_configurations_are_written(
    asked: WebhookProcess, server: Cluster, admin: ApiClient
) -> None:
    asked.kill()
    try:
        stored = await admin.create(CONFIGURATIONS, a_configuration(capacity=0))
    finally:
        asked.start()
        asked.wait_ready()

    assert stored["metadata"]["uid"]
