"""A cluster of two dictionaries and a binder that writes into them, for the order of things.

`api` is the truth; the world knows it late. Failures are what a test puts into `script`.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Collection
from dataclasses import dataclass, field, replace

from driver.api import DRIVER_NAME
from kube.calls.api import UnavailableError
from kube.shapes.reading import JsonObject
from scheduler_plugin.accounting.world import World
from scheduler_plugin.objects.bindings import (
    BindFailed,
    BindRequest,
    Bound,
    ClaimOwner,
    ClaimsChanged,
)
from scheduler_plugin.objects.claims import ClaimView, Result
from scheduler_plugin.objects.names import NO_POD, NO_QUEUE, AccountingSettings, PodUid
from scheduler_plugin.objects.pod_objects import pod_view
from scheduler_plugin.objects.pods import PodView
from scheduler_plugin.objects.projections import is_relevant
from scheduler_plugin.reclaiming.placement.inventory import Inventory
from tests.scheduler_plugin.builders import SETTINGS, a_world, put

Step = Callable[[], Awaitable[None]]


@dataclass
class FakeCluster:
    """What the API server holds, and the world that hears of it only when it is told to."""

    world: World = field(default_factory=a_world)
    settings: AccountingSettings = SETTINGS
    inventory: Inventory = field(default_factory=Inventory)
    pods: dict[str, PodView] = field(default_factory=dict)
    claims: dict[str, ClaimView] = field(default_factory=dict)
    not_ready: str = ""
    is_away: bool = False
    lags: bool = False
    reads: list[str] = field(default_factory=list)
    has_read: asyncio.Event = field(default_factory=asyncio.Event)
    _changed: asyncio.Event = field(default_factory=asyncio.Event)

    def why_not_ready(self) -> str:
        return self.not_ready

    def store(self, *objects: PodView | ClaimView) -> None:
        """Write objects; the watch tells of them at once unless it lags."""
        for found in objects:
            if isinstance(found, PodView):
                self.pods[found.name] = found
            else:
                version = str(int(found.resource_version or 0) + 1)
                found = replace(found, resource_version=version)
                self.claims[found.name] = found
            if not self.lags:
                put(self.world, found)
        self._changed.set()

    def catch_up(self) -> None:
        put(self.world, *self.pods.values(), *self.claims.values())
        self._changed.set()

    def reserve(self, claim: str, *pods: str) -> None:
        """What kube-scheduler's PreBind writes."""
        found = self.claims[claim]
        uids = tuple(PodUid(f"uid-of-{pod}") for pod in pods)
        reserved = tuple(dict.fromkeys((*found.reserved_for, *uids)))
        results = found.results or (Result("req", DRIVER_NAME),)
        self.store(replace(found, results=results, reserved_for=reserved))

    async def wait_for(
        self, condition: Callable[[], bool], seconds: float, about: Collection[str]
    ) -> bool:
        for _ in range(5):
            await asyncio.sleep(0)
            if condition():
                return True
        return False

    def read_pod(self, obj: JsonObject) -> PodView:
        return pod_view(obj, self.settings)

    async def refresh_pod(self, namespace: str, name: str) -> PodView | None:
        self._read(f"pod {name}")
        found = self.pods.get(name)
        if found is not None and is_relevant(found, self.settings):
            put(self.world, found)
        return found

    async def refresh_claim(self, namespace: str, name: str) -> ClaimView | None:
        self._read(f"claim {name}")
        found = self.claims.get(name)
        if found is not None:
            put(self.world, found)
            return found
        known = self.world.facts.claim_named(namespace, name)
        if known is not None:
            self.world.delete_claim(known.uid)
        self.world.note_gone_claim(namespace, name)
        return None

    def _read(self, what: str) -> None:
        self.reads.append(what)
        self.has_read.set()
        if self.is_away:
            raise UnavailableError("the API server is away")


@dataclass
class FakeBinder:
    """Writes into the fake cluster. Before each write a step of the test may happen."""

    cluster: FakeCluster
    before_write: list[Step] = field(default_factory=list)
    failures: list[BindFailed] = field(default_factory=list)
    requests: list[BindRequest] = field(default_factory=list)
    carried_out: list[ClaimOwner] = field(default_factory=list)
    owner_writes: list[tuple[str, str, str]] = field(default_factory=list)
    bound: dict[str, tuple[str, str]] = field(default_factory=dict)

    async def write_owners(self, request: BindRequest) -> ClaimsChanged | BindFailed | None:
        self.requests.append(request)
        for claim in request.claims:
            if claim.is_written:
                continue
            if self.before_write:
                await self.before_write.pop(0)()
            await asyncio.sleep(0)
            if not self._write(claim):
                return ClaimsChanged(claim)
        return None

    def _write(self, owner: ClaimOwner) -> bool:
        found = self.cluster.claims.get(owner.name)
        if found is None or (found.uid, found.resource_version) != (
            owner.uid,
            owner.resource_version,
        ):
            return False
        assert owner.owner_pod is not None
        self.owner_writes.append((owner.name, owner.queue, owner.owner_pod))
        self.cluster.store(replace(found, label=owner.queue, owner_pod=owner.owner_pod))
        # However late the watch is, the answer to an own write is known.
        put(self.cluster.world, self.cluster.claims[owner.name])
        return True

    async def roll_back(self, request: BindRequest) -> bool:
        for owner in request.claims:
            found = self.cluster.claims[owner.name]
            marks = (owner.uid, owner.queue, owner.owner_pod)
            is_same = (found.uid, found.label, found.owner_pod) == marks
            if is_same and {*found.reserved_for} <= {request.uid}:
                self.cluster.store(replace(found, label=NO_QUEUE, owner_pod=NO_POD))
        return True

    async def bind(self, request: BindRequest) -> Bound | BindFailed:
        await asyncio.sleep(0)
        self.carried_out += request.claims
        if self.failures:
            return self.failures.pop(0)
        assert request.name not in self.bound, "a pod is bound once"
        self.bound[request.name] = (request.node, request.queue)
        pod = self.cluster.pods[request.name]
        self.cluster.store(
            replace(
                pod,
                node=request.node,
                queue=request.queue or pod.queue,
                queue_is_bound=bool(request.queue),
            )
        )
        return Bound()
