"""Quota taken back on a real API server, from a pod that never ends; as the binder's account."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from binder.api import Binder, ReclaimConfig
from binder.reclaiming import apiserver_holds
from kube.calls.api import ApiClient
from kube.events.api import Event
from kube.kinds import NODES, PODS, SLICES
from kube.objects import JsonObject
from scheduler_plugin.accounting.api import PodChanged
from scheduler_plugin.objects.names import PodUid
from scheduler_plugin.objects.nodes import node_view
from scheduler_plugin.reclaiming.placement.inventory import Inventory
from scheduler_plugin.reclaiming.placement.published_slices import published_slice
from tests.e2e.binder.test_keeper import know
from tests.e2e.binder.world import (
    NAMESPACE,
    QUEUE,
    Stage,
    a_pod,
    new_name,
    new_stage,
    uid_of,
)
from tests.fakes.fence import FakeFence
from tests.scheduler_plugin.builders import a_queue, a_world

FINALIZER = "example.com/never"
GRACE_SECONDS = 30

LOOKS = 3000
"""How often the API server is asked for what is waited for."""


class Scene:
    """Queue mine waits for room that robots use beyond their quota; time passes as it is told."""

    def __init__(self, account: ApiClient, admin: ApiClient, node: str) -> None:
        self.admin = admin
        self.node = node
        self.passed = 0.0
        self.waiting: list[PodUid] = []
        self.pods: dict[str, JsonObject] = {}
        self.events: list[Event] = []
        self.world = a_world(
            a_queue("root", onvif=(2, 2)),
            a_queue("mine", parent="root", onvif=(1, 2)),
            a_queue("robots", parent="root", onvif=(0, 2)),
            namespaces=[NAMESPACE],
        )
        self.inventory = Inventory()
        binder = Binder(
            account, FakeFence(), queue_label=QUEUE, note_claim=self.see, note_pod=self.see
        )
        self.reclaimer = binder.reclaimer(
            self.world,
            ReclaimConfig(short_of_room=lambda: self.waiting, inventory=self.inventory),
            self.events.append,
            lambda: datetime.now(UTC) + timedelta(seconds=self.passed),
            lambda: time.monotonic() + self.passed,
        )

    def see(self, obj: JsonObject) -> None:
        if "containers" not in obj["spec"]:
            know(self.world, claim=obj)
            return
        know(self.world, pod=obj)
        self.reclaimer.changed(PodChanged(PodUid(uid_of(obj))))

    async def new_pod(self, name: str, queue: str, **metadata: Any) -> Stage:
        """A pod and its claim, of the same name."""
        labels = {"labels": {QUEUE: queue}} if queue == "robots" else {}
        stage = await new_stage(self.admin, **labels)
        body = a_pod(new_name(name), labels={QUEUE: queue}, **metadata)
        body["spec"] |= {
            "schedulerName": "moorage",
            "terminationGracePeriodSeconds": GRACE_SECONDS,
            "tolerations": [{"operator": "Exists"}],
            "resourceClaims": [{"name": "c", "resourceClaimName": stage.claim_name}],
        }
        self.pods[name] = await self.admin.create(PODS, body)
        self.see(await stage.claim())
        self.see(self.pods[name])
        return stage

    async def use(self, name: str, **metadata: Any) -> None:
        """One of robots' that runs."""
        stage = await self.new_pod(name, "robots", **metadata)
        self.see(await stage.allocate(self.pods[name]))
        await self.bind(name)

    async def wait(self) -> None:
        await self.new_pod("w", "mine")
        self.waiting = [PodUid(uid_of(self.pods["w"]))]

    async def let_end(self) -> None:
        for pod in self.pods.values():
            await self.admin.merge_patch(PODS.path_of(pod), {"metadata": {"finalizers": None}})

    async def bind(self, name: str) -> None:
        target = {"apiVersion": "v1", "kind": "Node", "name": self.node}
        metadata = {"name": self.pods[name]["metadata"]["name"], "namespace": NAMESPACE}
        body = {"apiVersion": "v1", "kind": "Binding", "metadata": metadata, "target": target}
        await self.admin.create(PODS, body, subresource="binding")
        await self.look(name)

    async def look(self, name: str) -> JsonObject:
        """A pod as it is now; the reclaimer hears of it."""
        pod = await self.admin.get(PODS.path_of(self.pods[name]))
        self.see(pod)
        return pod

    async def condition(self, name: str) -> tuple[str, str]:
        conditions = (await self.look(name))["status"].get("conditions", ())
        found = [c for c in conditions if c["type"] == "moorage.dev/Reclaiming"]
        return (found[0]["status"], found[0]["reason"]) if found else ("", "")

    async def until_condition(self, name: str, *expected: str) -> None:
        for _ in range(LOOKS):
            if await self.condition(name) == expected:
                return
        raise AssertionError(f"{name}: {await self.condition(name)}, evicted {self.evicted}")

    @property
    def evicted(self) -> list[str]:
        """Who was told, each time that somebody was."""
        names = {pod["metadata"]["name"]: name for name, pod in self.pods.items()}
        return [names[e.regarding.name] for e in self.events if e.reason == "Reclaimed"]

    async def until(self, what: Callable[[], object]) -> None:
        for _ in range(LOOKS):
            await self.look("w")
            if what():
                return
        raise AssertionError(f"evicted {self.evicted}, unmet {self.world.unmet}")


@asynccontextmanager
async def a_scene(account: ApiClient, admin: ApiClient) -> AsyncIterator[Scene]:
    """A node of its own with two devices; the reclaimer runs."""
    node = new_name("node")
    status = {
        "allocatable": {"cpu": "4", "pods": "10"},
        "conditions": [{"type": "Ready", "status": "True"}],
    }
    body = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": node}, "status": status}
    made = await admin.create(NODES, body)
    pool = {"name": "p", "generation": 1, "resourceSliceCount": 1}
    devices = [{"name": name} for name in ("d", "d2", "d3")]
    spec = {"driver": "moorage.dev", "pool": pool, "nodeName": node, "devices": devices}
    kind = {"apiVersion": "resource.k8s.io/v1", "kind": "ResourceSlice"}
    found = await admin.create(SLICES, {**kind, "metadata": {"name": node}, "spec": spec})
    scene = Scene(account, admin, node)
    scene.inventory.nodes.put_node(node_view(made))
    scene.inventory.devices.put_slice(published_slice(found))
    task = asyncio.create_task(scene.reclaimer.run())
    try:
        yield scene
    finally:
        task.cancel()
        await admin.delete(SLICES.at(node))
        await admin.delete(NODES.at(node))


async def test_for_one_that_never_ends_another_goes_once_and_the_queue_says_why(
    account: ApiClient, admin: ApiClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whether a hold is over is looked at each second: nobody waits for the minute of another."""
    monkeypatch.setattr(apiserver_holds, "FREE_SECONDS", 1.0)
    async with a_scene(account, admin) as scene:
        await scene.use("first", finalizers=[FINALIZER])
        await scene.use("second", finalizers=[FINALIZER])
        await scene.wait()
        await scene.until(lambda: scene.evicted)
        (gone,) = scene.evicted
        left = {"first": "second", "second": "first"}[gone]
        assert (await scene.look(gone))["metadata"].get("deletionTimestamp")
        await scene.until_condition("w", "True", "Reclaimed")

        scene.passed = GRACE_SECONDS + 20.0
        await scene.condition("w")
        assert scene.evicted == [gone]
        scene.passed = GRACE_SECONDS + 65.0
        await scene.until(lambda: scene.evicted == [gone, left])
        assert (await scene.look(left))["metadata"].get("deletionTimestamp")

        for _ in range(4):
            scene.passed += 65.0
            await scene.condition("w")
        await scene.until_condition("w", "False", "TimeOver")
        await scene.until(lambda: scene.world.unmet)
        (why,) = scene.world.unmet.values()
        assert "2 claims or pods have users that are terminating" in why
        assert (scene.evicted, [*scene.world.assumptions.holds]) == ([gone, left], [])
        await scene.let_end()
