"""Instances on an API server, as slots: what is known of them at any moment."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any

from driver.api import InstanceName
from driver.device_plugin.slots.apiserver_slots import SlotObjects
from kube.calls.api import connect
from tests.driver.slot_builders import CAMERA_1, CAMERA_2, NODE_A, an_instance_object
from tests.fakes.scripted_apiserver import event, hangs, lists, says, scripted, streams


def a_version(number: int, name: str = CAMERA_1, namespace: str = "a") -> dict[str, Any]:
    body = an_instance_object(name)
    identity = {
        "namespace": namespace,
        "uid": f"{namespace}-{name}",
        "resourceVersion": str(number),
    }
    return {**body, "metadata": {**body["metadata"], **identity}}


@asynccontextmanager
async def followed(folder: Path, *events: bytes) -> AsyncIterator[SlotObjects]:
    """Two cameras, of which one is in two namespaces; then what the watch brings; then 9."""
    found = [a_version(1), a_version(2, namespace="b"), a_version(3, CAMERA_2)]
    last = event("MODIFIED", a_version(9, CAMERA_2))
    async with scripted(folder) as fake, connect(fake.kubeconfig) as client:
        fake.will(lists(*found, version=3), streams(*events, last, then=hangs))
        slots, seen = SlotObjects(client, NODE_A), asyncio.Event()
        task = asyncio.create_task(slots.store.run())
        await slots.store.synced.wait()
        slots.store.subscribe(lambda _: seen.set() if _is_last(slots) else None)
        async with asyncio.timeout(5):
            await seen.wait()
        fake.will(says(a_version(10, namespace="b")))
        yield slots
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task


def _is_last(slots: SlotObjects) -> bool:
    return slots.views()[InstanceName(CAMERA_2)].resource_version == "9"


def versions(slots: SlotObjects) -> dict[str, str]:
    return {name: view.resource_version for name, view in slots.views().items()}


async def test_what_was_looked_at_once_shows_all_that_comes_later(tmp_path: Path) -> None:
    async with followed(tmp_path) as slots:
        views = slots.views()
        assert versions(slots) == {CAMERA_1: "2", CAMERA_2: "9"}

        await slots.read("b", CAMERA_1)

        assert views[CAMERA_1].resource_version == "10"


async def test_of_two_namespaces_what_is_left_is_shown(tmp_path: Path) -> None:
    gone = event("DELETED", a_version(4, namespace="b"))
    async with followed(tmp_path, gone) as slots:
        assert versions(slots) == {CAMERA_1: "1", CAMERA_2: "9"}


async def test_what_is_gone_is_not_shown(tmp_path: Path) -> None:
    events = event("DELETED", a_version(4)), event("DELETED", a_version(5, namespace="b"))
    async with followed(tmp_path, *events) as slots:
        assert versions(slots) == {CAMERA_2: "9"}
