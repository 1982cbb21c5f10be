"""What the webhook knows, and what it waits for; tests/e2e/webhook has the real API server."""

from __future__ import annotations

import asyncio
from collections import Counter
from typing import NoReturn, cast

import pytest

from kube.backoff import Backoff
from kube.calls.api import ApiClient, UnavailableError
from kube.objects import JsonObject
from kube.resources import Resource
from scheduler_plugin.objects.names import AccountingSettings
from webhook import cluster
from webhook.cluster import Cluster
from webhook.rules.rule_context import PodSettings


class FakeStartingServer:
    """An API server that starts: it cannot say at first what it serves, and serves nothing."""

    def __init__(self) -> None:
        self.asked: Counter[Resource] = Counter()

    async def serves(self, resource: Resource) -> bool:
        self.asked[resource] += 1
        if self.asked[resource] == 1:
            raise UnavailableError("it is starting")
        return False

    def pages(self, *_: object, **__: object) -> NoReturn:
        raise UnavailableError("it is starting")


def an_instance(namespace: str, version: int) -> JsonObject:
    return {
        "metadata": {
            "name": "usb-1",
            "namespace": namespace,
            "uid": f"uid-in-{namespace}",
            "resourceVersion": str(version),
        },
        "spec": {"configurationName": "usb"},
    }


def test_an_instance_stays_accounted_while_another_namespace_has_one_of_its_name() -> None:
    found = Cluster(cast(ApiClient, FakeStartingServer()), AccountingSettings(), PodSettings())
    accounted = found.rule_context.catalog.accounted_resource
    for version, namespace in enumerate(("old", "new"), start=1):
        found.instances.note(an_instance(namespace, version))
    assert accounted("akri.sh/usb-1") == "usb"

    found.instances.take_deletion(an_instance("old", 3))
    assert accounted("akri.sh/usb-1") == "usb"

    found.instances.take_deletion(an_instance("new", 4))
    assert accounted("akri.sh/usb-1") is None


def a_stored_configuration(name: str, handler: str, *conditions: dict[str, str]) -> JsonObject:
    uid = f"uid-of-{name}"
    return {
        "metadata": {"name": name, "namespace": "lab", "uid": uid, "resourceVersion": "1"},
        "spec": {"discoveryHandler": {"name": handler}},
        "status": {"conditions": [{"type": "Accepted", "status": "True"}, *conditions]},
    }


def test_a_configuration_tells_nothing_of_its_own_handler() -> None:
    """Or the warning about a name that is none would be gone with the second write."""
    found = Cluster(cast(ApiClient, FakeStartingServer()), AccountingSettings(), PodSettings())
    missing = {"type": "HandlerRegistered", "status": "False", "message": "None on node-a."}
    found.configurations.note(a_stored_configuration("camera", "Onvif", missing))
    found.configurations.note(a_stored_configuration("usb", "barcode"))

    assert found.reported_handlers("lab", "camera") == {}
    assert found.reported_handlers("lab", "other") == {"Onvif": "None on node-a."}
    found.instances.note(an_instance("lab", 1))
    assert found.reported_handlers("lab", "camera") == {"barcode": ""}


async def test_a_kind_is_missing_although_the_server_could_not_say_so_at_first(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(cluster, "BACKOFF", Backoff(0.0, 0.0))
    client = FakeStartingServer()
    found = Cluster(cast(ApiClient, client), AccountingSettings(), PodSettings())
    running = asyncio.create_task(found.run())
    for _ in range(100):
        await asyncio.sleep(0)
    running.cancel()

    assert found.why_not_ready() == "Not read yet: queues, namespaces."
    assert set(client.asked.values()) == {2}
