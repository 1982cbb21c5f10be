"""A controller of claims, its world, and an API server in memory that the world hears of."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from datetime import datetime, timedelta
from typing import Any

import pytest

from kube.events.api import Event
from kube.kinds import CLAIMS, PODS
from kube.objects import JsonObject
from scheduler_plugin.accounting.api import World
from scheduler_plugin.cleanup.api import ClaimCleanup
from scheduler_plugin.objects.claim_objects import claim_view
from scheduler_plugin.objects.names import ClaimUid
from scheduler_plugin.objects.pod_objects import pod_view
from tests.binder.builders import a_binder
from tests.fakes.claim_server import OWNER_LEFT_AT, QUEUE, FakeClaimServer
from tests.fakes.fence import FakeFence
from tests.scheduler_plugin.builders import (
    NOW,
    SETTINGS,
    a_claim_object,
    a_pod_object,
    a_world,
    claim_uid,
    put,
)


class Scene:
    """Everything of one test.

    Attributes:
        clock_ahead: How far the wall clock is ahead of the event loop's.
        events: What people were told, in order.
    """

    def __init__(
        self,
        *objects: object,
        fence: FakeFence | None = None,
        server: FakeClaimServer | None = None,
    ) -> None:
        self.server = server or FakeClaimServer()
        self.world: World = a_world(*objects)
        self.busy: set[ClaimUid] = set()
        self.events: list[Event] = []
        self.clock_ahead = timedelta(0)
        self.binder = a_binder(self.server, fence, note_claim=self.noted)
        cleanup = ClaimCleanup(self.world)
        self.controller = self.binder.claim_controller(cleanup, self.events.append, self.clock)
        self.controller.is_busy = lambda uid: uid in self.busy

    def clock(self) -> datetime:
        return NOW + self.clock_ahead + timedelta(seconds=asyncio.get_running_loop().time())

    def noted(self, claim: JsonObject) -> None:
        """What the stores do with an answer."""
        self.hear(claim)
        self.controller.changed([ClaimUid(claim["metadata"]["uid"])])

    def hear(self, claim: JsonObject) -> None:
        """What the stores do with an event, unknown to the controller."""
        put(self.world, claim_view(claim, queue_label=QUEUE))

    def add(self, name: str = "cam", queue: str = "a", owner_pod: str = "a") -> None:
        """A claim that is not allocated."""
        left = {OWNER_LEFT_AT: "2026-11-21T12:00:00Z"} if owner_pod else {}
        self.put_claim(name, queue=queue, owner_pod=owner_pod, annotations=left)

    def put_claim(self, name: str = "cam", **fields: Any) -> None:
        """A claim as somebody else wrote it."""
        self.server.put(CLAIMS, a_claim_object(name, **fields))
        self.hear(self.server.claim(name))

    def put_pod(self, name: str, **fields: Any) -> None:
        body = a_pod_object(name, **{"queue": name, "claims": ["cam"], "node": "n", **fields})
        self.server.put(PODS, body)
        put(self.world, pod_view(self.server.pod(name), SETTINGS))

    def remove_pod(self, name: str) -> None:
        """The pod is gone, whether the server had it still or not."""
        pod = self.world.facts.pod_named("default", name)
        assert pod is not None
        self.world.delete_pod(pod.uid)
        self.controller.changed([claim_uid("cam")])

    async def later(self, **time: float) -> None:
        """Time passes."""
        await asyncio.sleep(timedelta(**time).total_seconds())

    @property
    def told(self) -> list[tuple[str, str]]:
        """Reason of each Event, and what it is about."""
        return [(event.reason, event.regarding.name) for event in self.events]

    async def until(self, condition: Callable[[], bool]) -> None:
        """Let time pass until it is so: ten minutes at most."""
        async with asyncio.timeout(600):
            while not condition():  # noqa: ASYNC110  No event tells a test of it.
                await asyncio.sleep(0.01)

    async def until_idle(self) -> None:
        """Let so much time pass that all is done that may be done at once."""
        await asyncio.sleep(3)

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        task = asyncio.create_task(self.controller.run())
        yield
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
