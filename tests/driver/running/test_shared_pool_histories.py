"""Histories of a shared pool: nodes, claims and the shared driver, killed between any two writes.

Whatever happens, no device that a claim has leaves the slices, and no Instance of it is removed;
and in the end the slices say what there is.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import replace
from datetime import timedelta
from typing import Any, cast

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from driver.api import NODE_LABEL, OFFERED_THROUGH, Configuration, ConfigurationName
from driver.configurations.configurations import Verdict
from driver.instances.cluster_instances import BY_CONFIGURATION
from driver.instances.slots.lost_nodes import node_state
from driver.instances.stored.objects import DeleteInstance
from driver.instances.unseen_instances import (
    PatchInstance,
    Surroundings,
    observed_instance,
    plan_unseen,
)
from driver.publishing.apiserver_allocations import AllocationWatch
from driver.publishing.apply.resource_slices import stored_slice
from driver.publishing.cluster_pools import ClusterPools, SharedInputs, SharedOffer
from driver.publishing.desired.publication import stored_devices
from driver.publishing.desired.slices import Features
from kube.calls.api import ApiClient, ApiError
from kube.kinds import INSTANCES, NODES
from kube.objects import ObjectKey
from kube.stores.api import Store
from tests.driver.builders import NOW, a_configuration
from tests.fakes.allocations import FakeAllocations
from tests.fakes.killed import KilledError
from tests.fakes.slices import FakeSliceServer
from tests.fakes.tasks import FakeTasks

HOSTS = {"node-a": "host-a", "node-b": "host-b"}
CAMERA = ConfigurationName("camera")
NAMES = ("camera-000001", "camera-000002", "camera-000003")
GRACE = timedelta(seconds=30)

cameras = st.sampled_from(NAMES)
some_nodes = st.sets(st.sampled_from(sorted(HOSTS)))
how_many = st.sampled_from([None, None, 0, 1, 2])


class SharedPool(RuleBasedStateMachine):
    """Three cameras of one Configuration, seen by up to three sets of two nodes."""

    def __init__(self) -> None:
        super().__init__()
        self.now = NOW
        self.server = FakeSliceServer()
        self.client = cast("ApiClient", self.server)
        self.version = 1
        self.instances: dict[str, dict[str, Any]] = {}
        self.claims: set[tuple[str, str]] = set()
        self.features = Features(consumable_capacity=True, taints=True, device_nodes=True)
        self.configuration: Configuration | None = self.configured(2, unique=True)
        self.exists = True
        self.loop = asyncio.Runner()
        self.start()

    def teardown(self) -> None:
        try:
            self.settles()
        finally:
            self.loop.close()

    @staticmethod
    def configured(capacity: int, *, unique: bool) -> Configuration:
        return a_configuration(
            CAMERA, capacity=capacity, unique_devices=unique, offline_grace_period=GRACE
        )

    def start(self) -> None:
        """A process that knows nothing yet but what the API server has."""
        observed_instances = Store(
            self.client,
            INSTANCES.select(),
            observed_instance,
            indexes={BY_CONFIGURATION: lambda observed: (observed.slots.configuration,)},
        )
        nodes = Store(self.client, NODES.select(), node_state)
        for name, hostname in HOSTS.items():
            labels = {"kubernetes.io/hostname": hostname}
            times = {"uid": name, "resourceVersion": "1", "creationTimestamp": NOW.isoformat()}
            nodes.note({"metadata": {"name": name, "labels": labels, **times}})
        offer = SharedOffer(self.features, is_dra=True)
        world = SharedInputs(self.held, observed_instances, nodes, lambda: self.now.timestamp())
        tasks = cast("asyncio.TaskGroup", FakeTasks())
        self.pools = ClusterPools(self.client, offer, world, tasks, lambda: None)
        self.allocations = FakeAllocations(self.claims)
        self.pools.allocations = cast("AllocationWatch", self.allocations)
        self.observed_instances = observed_instances
        self.watch()
        self.loop.run(self.started())

    async def started(self) -> None:
        self.pools.start()

    def held(self) -> Mapping[ConfigurationName, Verdict]:
        if not self.exists:
            return {}
        verdict = Verdict(
            name=CAMERA,
            namespace="default",
            uid="uid",
            generation=1,
            created=NOW,
            configuration=self.configuration,
        )
        return {CAMERA: verdict}

    @rule()
    def watch(self) -> None:
        """All Instances and slices are seen."""
        _listed(self.observed_instances, self.instances, self.version)
        _listed(self.pools.slices, self.server.objects, self.server.version)

    @rule()
    def watch_claims(self) -> None:
        """What claims have is seen by a watch of its own."""
        self.allocations.watch()

    @rule(camera=cameras, nodes=some_nodes)
    def see(self, camera: str, nodes: set[str]) -> None:
        """These nodes see a camera; the first of them makes its Instance."""
        if camera in self.instances or nodes:
            self.put(camera, spec={"nodes": sorted(nodes)})

    @rule(order=st.permutations(NAMES))
    def see_each_by_other_nodes(self, order: list[str]) -> None:
        """So many sets of nodes that devices say themselves who sees them."""
        for camera, nodes in zip(order, ({"node-a"}, {"node-b"}, set(HOSTS)), strict=True):
            self.see(camera, nodes)

    def put(self, camera: str, *, spec: Any, **annotations: str | None) -> None:
        before = self.instances.get(camera, {"metadata": {}, "spec": {}})
        kept = {**before["metadata"].get("annotations", {OFFERED_THROUGH: "dra"}), **annotations}
        self.version += 1
        self.instances[camera] = {
            "metadata": {
                "name": camera,
                "namespace": "default",
                "uid": before["metadata"].get("uid", f"uid-{self.version}"),
                "resourceVersion": str(self.version),
                "creationTimestamp": (NOW - timedelta(hours=1)).isoformat(),
                "labels": {NODE_LABEL: ""},
                "annotations": {name: value for name, value in kept.items() if value},
            },
            "spec": {"configurationName": CAMERA, "capacity": 2, **before["spec"], **spec},
        }

    @rule(capacity=st.integers(1, 3), unique=st.booleans())
    def configure(self, capacity: int, unique: bool) -> None:
        self.exists, self.configuration = True, self.configured(capacity, unique=unique)

    @rule()
    def break_configuration(self) -> None:
        self.configuration = None

    @rule()
    def delete_configuration(self) -> None:
        """Its Instances are collected with it."""
        self.exists = False
        if not self.claims:
            self.instances.clear()

    @rule(kill=how_many, lose=how_many)
    def pass_over(self, kill: int | None, lose: int | None) -> None:
        """A pass that may fail at any write; a killed process begins anew."""
        self.server.kill_after, self.server.lose_after = kill, lose
        self.now += timedelta(seconds=30)
        try:
            self.pools.requeue()
            for pool in list(self.pools.pools.values()):
                with suppress(ApiError):
                    self.loop.run(pool.reconcile())
        except KilledError:
            self.server.kill_after = None
            self.start()
        self.server.kill_after = self.server.lose_after = None

    @rule()
    def restart(self) -> None:
        self.start()

    @rule(device_nodes=st.booleans())
    def change_version(self, device_nodes: bool) -> None:
        """One that lets devices say who sees them, or one that does not."""
        self.features = replace(self.features, device_nodes=device_nodes)
        self.start()

    def free(self) -> list[tuple[str, str]]:
        """What a new claim may get."""
        return sorted(
            (pool, device["name"])
            for pool, device in self.server.devices()
            if not device.get("taints") and (pool, device["name"]) not in self.claims
        )

    @precondition(lambda self: self.free())
    @rule(data=st.data())
    def claim(self, data: st.DataObject) -> None:
        self.claims.add(data.draw(st.sampled_from(self.free())))

    @precondition(lambda self: self.claims)
    @rule(data=st.data())
    def release(self, data: st.DataObject) -> None:
        self.claims.discard(data.draw(st.sampled_from(sorted(self.claims))))

    @rule()
    def clear_up(self) -> None:
        """A pass of the same process over Instances; what has changed is left for another."""
        surroundings = Surroundings(
            configurations={CAMERA: self.configuration} if self.configuration else {},
            existing=[],
            gone=[],
            claimed=self.pools.claimed,
        )
        for decision in plan_unseen(self.observed_instances, surroundings, now=self.now).decisions:
            match decision:
                case PatchInstance(_, name, {"metadata": metadata}) if self.is_current(
                    name, metadata["resourceVersion"]
                ):
                    self.put(name, spec={}, **metadata["annotations"])
                case DeleteInstance(name=name) if self.is_current(name, decision.resource_version):
                    assert name not in {device[: len(name)] for _, device in self.claims}
                    del self.instances[name]

    def shown_to(self) -> dict[str, set[str]]:
        """The hosts of each camera that is there, as its slice or its devices say."""
        views = map(stored_slice, self.server.objects.values())
        return {
            name: {host for host in HOSTS.values() if f'"{host}"' in str(scope)}
            for body, scope in stored_devices(views)
            if not body.get("taints") and (name := body["name"][: len(NAMES[0])])
        }

    def is_current(self, name: str, version: str) -> bool:
        stored = self.instances.get(name, {"metadata": {"resourceVersion": ""}})
        return bool(stored["metadata"]["resourceVersion"] == version)

    @invariant()
    def what_a_claim_has_is_published(self) -> None:
        stored = {
            (o["spec"]["pool"]["name"], device["name"])
            for o in self.server.objects.values()
            for device in o["spec"].get("devices", ())
        }
        assert self.claims <= stored

    @rule()
    def settles(self) -> None:
        """Once nothing fails, all that nodes see is there, untainted, and nothing else is."""
        for _ in range(12):
            self.watch()
            self.watch_claims()
            self.pass_over(None, None)
            self.clear_up()
        if not self.exists or self.configuration is None or self.claims:
            return
        seen = {name for name, body in self.instances.items() if body["spec"].get("nodes")}
        shown = {device["name"][: len(NAMES[0])] for _, device in self.server.devices()}
        untainted = {device[: len(NAMES[0])] for _, device in self.free()}
        assert seen == untainted
        assert self.shown_to() == {
            name: {HOSTS[node] for node in self.instances[name]["spec"]["nodes"]} for name in seen
        }
        assert shown <= self.instances.keys()


def _listed(store: Store[Any], objects: Mapping[str, Any], version: int) -> None:
    for body in objects.values():
        store.note(body)
    names = [body["metadata"] for body in objects.values()]
    seen = {ObjectKey(metadata.get("namespace", ""), metadata["name"]) for metadata in names}
    store.finish_list(seen, version)


SharedPool.TestCase.settings = settings(max_examples=40, stateful_step_count=30, deadline=None)
TestSharedPool = SharedPool.TestCase


def test_an_instance_stays_until_it_is_known_what_claims_got_before_its_taint() -> None:
    """Claims are watched already, for the first camera; what the second's got comes late."""
    first, second = NAMES[:2]
    pool = SharedPool()
    try:
        pool.configuration = pool.configured(1, unique=True)
        for camera in (first, second):
            pool.see(camera, {"node-a"})
        for gone in (first, second):
            pool.watch()
            pool.pass_over(None, None)
            pool.claims |= {place for place in pool.free() if place[1].startswith(gone)}
            pool.see(gone, set())
            pool.watch()
            pool.pass_over(None, None)
            if gone == first:
                pool.watch_claims()
        for _ in range(3):
            pool.clear_up()
            pool.watch()
            pool.pass_over(None, None)

        assert pool.instances.keys() == {first, second}
        assert len(pool.claims) == 2
        pool.what_a_claim_has_is_published()
    finally:
        pool.teardown()
