"""Random lives of queues, classes, claims and pods on the real API server."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any
from uuid import uuid4

from kube.calls.api import (
    AlreadyExistsError,
    ApiClient,
    ConflictError,
    NotFoundError,
    RetryableError,
)
from kube.kinds import CLAIMS, CLASSES, NAMESPACES, PODS, QUEUES
from kube.objects import JsonObject
from scheduler_plugin.accounting.world import World
from scheduler_plugin.cluster.stores import ClusterWorld
from scheduler_plugin.objects.claim_objects import claim_view
from scheduler_plugin.objects.devices.devices import class_view
from scheduler_plugin.objects.names import QUEUE_LABEL, AccountingSettings, Queue
from scheduler_plugin.objects.pod_objects import namespace_view, pod_view
from scheduler_plugin.objects.queue_objects import parse_queue
from tests.e2e.kube_world import BRIEF

RESULT = {"request": "req", "driver": "moorage.dev", "pool": "onvif", "device": "onvif-1"}


@dataclass
class Lives:
    """Writes at random to objects of its own names."""

    client: ApiClient
    namespace: str
    chance: random.Random
    cluster: ClusterWorld | None = None
    prefix: str = field(default_factory=lambda: f"q{uuid4().hex[:6]}")
    answered: int = 0
    unanswered: int = 0

    async def go_on(self, steps: int) -> None:
        for _ in range(steps):
            try:
                with suppress(AlreadyExistsError, ConflictError, NotFoundError):
                    await self.chance.choice(self._deeds())()
                self.answered += 1
            except RetryableError:
                self.unanswered += 1

    def _deeds(self) -> list[Callable[[], Any]]:
        often = [self.make_pod, self.make_claim, self.allocate, self.bind, self.write_class]
        seldom = [self.end_pod, self.delete_pod, self.deallocate, self.delete_claim]
        others = [self.write_queue, self.delete_queue, self.label_claim, self.label_namespace]
        return [*often, *often, *seldom, *others, self.delete_class]

    def queue(self) -> str:
        return f"{self.prefix}-{self.chance.randrange(4)}"

    def device_class(self) -> str:
        return f"{self.prefix}.{self.chance.choice(['camera', 'gpu'])}"

    def claim(self) -> str:
        return f"claim-{self.chance.randrange(5)}"

    def pod(self) -> str:
        return f"pod-{self.chance.randrange(8)}"

    async def write_queue(self) -> None:
        name, parent = self.queue(), self.chance.choice(["", self.queue(), "missing"])
        shares = [{"deviceClass": self.device_class(), "quota": self.chance.randrange(4)}]
        spec = {"resources": shares, "namespaceSelector": {}} | (
            {"parent": parent} if parent not in ("", name) else {}
        )
        body = {"apiVersion": QUEUES.api_version, "kind": "Queue", "metadata": {"name": name}}
        try:
            await self.client.create(QUEUES, {**body, "spec": spec}, options=BRIEF)
        except AlreadyExistsError:
            patch = {"spec": {"parent": None, **spec}}
            await self.client.merge_patch(QUEUES.at(name), patch, options=BRIEF)

    async def delete_queue(self) -> None:
        await self.client.delete(QUEUES.at(self.queue()), options=BRIEF)

    async def write_class(self) -> None:
        name = self.device_class()
        label = {"moorage.dev/accounted": self.chance.choice(["true", "true", "true", "false"])}
        metadata = {"name": name, "labels": label}
        body = {"apiVersion": CLASSES.api_version, "kind": "DeviceClass", "metadata": metadata}
        try:
            await self.client.create(CLASSES, {**body, "spec": {}}, options=BRIEF)
        except AlreadyExistsError:
            patch = {"metadata": {"labels": label}}
            await self.client.merge_patch(CLASSES.at(name), patch, options=BRIEF)

    async def delete_class(self) -> None:
        await self.client.delete(CLASSES.at(self.device_class()), options=BRIEF)

    async def label_namespace(self) -> None:
        label = self.chance.choice([None, self.queue()])
        patch = {"metadata": {"labels": {QUEUE_LABEL: label}}}
        await self.client.merge_patch(NAMESPACES.at(self.namespace), patch, options=BRIEF)

    async def make_claim(self) -> None:
        request = {"name": "req", "exactly": {"deviceClassName": self.device_class()}}
        metadata: dict[str, Any] = {"name": self.claim(), "namespace": self.namespace}
        if self.chance.random() < 0.3:
            metadata["labels"] = {QUEUE_LABEL: self.queue()}
        body = {"apiVersion": CLAIMS.api_version, "kind": "ResourceClaim", "metadata": metadata}
        spec = {"devices": {"requests": [request]}}
        await self.client.create(CLAIMS, {**body, "spec": spec}, options=BRIEF)

    async def label_claim(self) -> None:
        patch = {"metadata": {"labels": {QUEUE_LABEL: self.chance.choice([None, self.queue()])}}}
        path = CLAIMS.at(self.claim(), self.namespace)
        answer = await self.client.merge_patch(path, patch, options=BRIEF)
        if self.cluster:
            self.cluster.note_claim(answer)

    async def allocate(self) -> None:
        pods = await self.client.list(PODS.select(self.namespace), timeout_seconds=2)
        consumers = self.chance.sample(pods.items, min(len(pods.items), 2))
        reserved = [
            {"resource": "pods", "name": p["metadata"]["name"], "uid": p["metadata"]["uid"]}
            for p in consumers
        ]
        status = {"allocation": {"devices": {"results": [RESULT]}}, "reservedFor": reserved}
        await self._write_status(status)

    async def deallocate(self) -> None:
        await self._write_status({})

    async def _write_status(self, status: JsonObject) -> None:
        claim = await self.client.get(CLAIMS.at(self.claim(), self.namespace), timeout_seconds=2)
        path = CLAIMS.at(claim["metadata"]["name"], self.namespace, "status")
        await self.client.replace(path, {**claim, "status": status}, options=BRIEF)

    async def delete_claim(self) -> None:
        await self.client.delete(CLAIMS.at(self.claim(), self.namespace), options=BRIEF)

    async def make_pod(self) -> None:
        claims = self.chance.sample(range(5), self.chance.randrange(3))
        spec = {
            "containers": [{"name": "main", "image": "none"}],
            "resourceClaims": [
                {"name": f"c{n}", "resourceClaimName": f"claim-{n}"} for n in claims
            ],
            "automountServiceAccountToken": False,
        }
        labels = {QUEUE_LABEL: self.queue()} if self.chance.random() < 0.7 else {}
        metadata = {"name": self.pod(), "namespace": self.namespace, "labels": labels}
        body = {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec}
        await self.client.create(PODS, body, options=BRIEF)

    async def bind(self) -> None:
        metadata = {"name": self.pod(), "namespace": self.namespace}
        target = {"apiVersion": "v1", "kind": "Node", "name": "nowhere"}
        body = {"apiVersion": "v1", "kind": "Binding", "metadata": metadata, "target": target}
        await self.client.create(PODS, body, subresource="binding", options=BRIEF)

    async def end_pod(self) -> None:
        path = PODS.at(self.pod(), self.namespace, "status")
        await self.client.merge_patch(path, {"status": {"phase": "Succeeded"}}, options=BRIEF)

    async def delete_pod(self) -> None:
        path = PODS.at(self.pod(), self.namespace)
        await self.client.delete(path, grace_period_seconds=0, options=BRIEF)


async def world_from_lists(client: ApiClient, settings: AccountingSettings) -> World:
    """A world of what the API server lists now."""
    world = World(settings)
    world.serve_groups(served=False)

    async def listed(resource: Any) -> Iterable[JsonObject]:
        return (await client.list(resource.select())).items

    for pod in await listed(PODS):
        view = pod_view(pod, settings)
        if view.may_use_devices:
            world.put_pod(view)
    for claim in await listed(CLAIMS):
        world.put_claim(claim_view(claim, queue_label=settings.queue_label))
    for namespace in await listed(NAMESPACES):
        world.put_namespace(namespace_view(namespace))
    for device_class in await listed(CLASSES):
        world.put_class(class_view(device_class))
    for obj in await listed(QUEUES):
        queue = parse_queue(obj)
        assert isinstance(queue, Queue)
        world.put_queue(queue)
    return world


def known(world: World) -> dict[str, Any]:
    """All that can be compared of a world."""
    facts = world.facts
    return {
        "pods": {pod.uid: pod for pod in facts.pods()},
        "claims": {c.uid: (c, c.resource_version) for c in facts.claims()},
        "namespaces": facts.namespaces,
        "queues": {queue.name: queue for queue in facts.tree},
        "charged": world.ledger.by_queue(),
        "orphans": world.ledger.orphans(),
    }
