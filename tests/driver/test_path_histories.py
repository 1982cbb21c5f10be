"""Histories of a shared device between two paths: no use is granted twice, none is lost at rest.

Two nodes give slots away, each from a view that may be old; the shared driver publishes what is
left, and kube-scheduler allocates what it saw a while ago. All may be killed between any two steps,
and the path changes at any time.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from hypothesis import Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from driver.api import NODE_LABEL, DeviceName, NodeName
from driver.device_ids import slot_id
from driver.instances import stored_instance
from driver.inventory import Inventory
from driver.offer_paths import OfferPath
from driver.publication import (
    Supply,
    claimable_instances,
    publication_of,
    publish,
)
from driver.shared_pools import Nodes, shared_devices, shared_supply
from driver.shared_turns import plan_turns, turn_patch
from driver.slices import Features
from driver.slot_allocation import Offer, OfInstance, Refused, plan_allocate
from driver.slots import InstanceSlots, instance_slots, slot_write
from driver.unseen_instances import instance_sight
from tests.driver.builders import NOW, a_configuration
from tests.driver.slot_builders import (
    CAMERA_1,
    CONFIGURATION,
    NODE_A,
    NODE_B,
    ConflictError,
    FakeInstances,
    a_camera,
    an_instance_object,
)

CAPACITY = 3
PLACES = Nodes({NODE_A: "host-a", NODE_B: "host-b"})
DRA, DEVICE_PLUGIN = OfferPath.DRA, OfferPath.DEVICE_PLUGIN
MODES = (
    Features(consumable_capacity=True, taints=True),
    Features(consumable_capacity=False, taints=False),
)

nodes = st.sampled_from([NODE_A, NODE_B])
paths = st.sampled_from([DRA, DEVICE_PLUGIN])


@dataclass
class Claim:
    """One that kube-scheduler has allocated."""

    device: str
    is_prepared: bool = False


class Histories(RuleBasedStateMachine):
    """One camera of three slots."""

    def __init__(self) -> None:
        super().__init__()
        self.now = NOW
        self.stored = FakeInstances.of()
        body = an_instance_object(CAMERA_1, capacity=CAPACITY, nodes=[NODE_A, NODE_B])
        times = {"creationTimestamp": NOW.isoformat(), "labels": {NODE_LABEL: ""}}
        self.stored.bodies[CAMERA_1] = {**body, "metadata": {**body["metadata"], **times}}
        self.views = dict.fromkeys((NODE_A, NODE_B), self.body)
        self.containers: set[tuple[NodeName, int]] = set()
        self.claims: list[Claim] = []
        self.slices: Mapping[DeviceName, Any] = {}
        self.seen: Mapping[DeviceName, Any] = {}
        self.path = DEVICE_PLUGIN
        self.features = MODES[0]
        self.configuration = a_configuration(CONFIGURATION, capacity=CAPACITY)
        self.restart()

    @initialize(features=st.sampled_from(MODES))
    def serve(self, features: Features) -> None:
        self.features = features

    @property
    def body(self) -> dict[str, Any]:
        body: dict[str, Any] = self.stored.bodies[CAMERA_1]
        return body

    @property
    def slots(self) -> InstanceSlots:
        return instance_slots(self.body)

    # The device plugins of the nodes

    @rule(node=nodes)
    def watch(self, node: NodeName) -> None:
        self.views[node] = self.body

    @rule(node=nodes, index=st.integers(0, CAPACITY - 1), up_to_date=st.booleans())
    def give(self, node: NodeName, index: int, up_to_date: bool) -> None:
        """The kubelet chose a slot by a list that may be old, as what the driver knows may be."""
        if (node, index) in self.containers:
            return
        if up_to_date:
            self.watch(node)
        camera = a_camera(capacity=CAPACITY)
        while True:
            views = {CAMERA_1: instance_slots(self.views[node])}
            offer = Offer(node=node, slots=views, instances={CAMERA_1: camera})
            plan = plan_allocate(OfInstance(CAMERA_1), [[slot_id(CAMERA_1, index)]], offer)
            if isinstance(plan, Refused):
                return
            try:
                self.stored.write(plan.writes)
            except ConflictError:
                self.views[node] = self.body
                continue
            if plan.writes or self.views[node] is self.body:
                self.containers.add((node, index))
                return
            self.views[node] = self.body

    @precondition(lambda self: self.containers)
    @rule(data=st.data())
    def end_container(self, data: st.DataObject) -> None:
        """Its slot is freed by the node, whatever path that is on by then."""
        node, index = data.draw(st.sampled_from(sorted(self.containers)))
        self.containers.remove((node, index))
        self.stored.write([slot_write(self.slots, node, {index: None})])

    # The shared driver

    @rule()
    def watch_shared(self) -> None:
        self.view = self.body

    @rule()
    def restart(self) -> None:
        """Killed and started, or another is elected: what is stored is all it knows."""
        self.view = self.body
        stored = ((body, None) for body in self.slices.values())
        self.written = publication_of(stored)
        self.claimed: frozenset[str] | None = None

    @precondition(lambda self: not self.late())
    @rule(path=paths)
    def move(self, path: OfferPath) -> None:
        self.path = path
        self.restart()

    @rule(knows_claims=st.booleans(), is_killed=st.booleans())
    def publish(self, knows_claims: bool, is_killed: bool) -> None:
        """A pass of the pools; who is killed in it has written or not."""
        self.now += timedelta(milliseconds=1)
        allocated = {DeviceName(c.device) for c in self.claims} if knows_claims else None
        decided = publish(
            self._supply(), self.written, self.features, allocated=allocated, now=self.now
        )
        self.slices = {name: offer.body for name, offer in decided.offers.items()}
        self.written = decided
        self.claimed = claimable_instances(self.written, allocated)
        if is_killed:
            self.restart()

    def _supply(self) -> Supply:
        if self.path is not DRA:
            return Supply()
        return shared_supply(self.configuration, [instance_sight(self.view)], PLACES)

    @rule()
    def turn(self) -> None:
        """A pass over the Instances; somebody may have written first."""
        sights = [instance_sight(self.view)]
        for decision in plan_turns(sights, self.path, self.claimed):
            metadata = turn_patch(decision)["metadata"]
            current = self.body["metadata"]
            if metadata["resourceVersion"] == current["resourceVersion"]:
                version = str(int(current["resourceVersion"]) + 1)
                changed = {**current, **metadata, "resourceVersion": version}
                self.stored.bodies[CAMERA_1] = {**self.body, "metadata": changed}
            self.view = self.body

    @rule()
    def settle(self) -> None:
        """Time for all that it wants to do."""
        for _ in range(4):
            self.watch_shared()
            self.publish(knows_claims=True, is_killed=False)
            self.turn()

    # Claims

    @rule()
    def watch_slices(self) -> None:
        self.seen = self.slices

    @rule(up_to_date=st.booleans())
    def allocate(self, up_to_date: bool) -> None:
        """As kube-scheduler does, by slices that may have changed since it saw them."""
        if up_to_date:
            self.watch_slices()
        if device := next(self._free(self.seen), None):
            self.claims.append(Claim(device))

    def _free(self, slices: Mapping[DeviceName, Any]) -> Iterator[str]:
        """Each device as often as claims can still have it."""
        for name, body in slices.items():
            whole = {"slots": {"value": "1"}}
            value = int((body.get("capacity") or whole)["slots"]["value"])
            used = sum(claim.device == name for claim in self.claims)
            if not body.get("taints"):
                yield from [str(name)] * (value - used)

    @precondition(lambda self: self.claims)
    @rule(data=st.data())
    def prepare(self, data: st.DataObject) -> None:
        claim = data.draw(st.sampled_from(self.claims))
        inventory = Inventory(
            {self.configuration.name: self.configuration},
            (a_camera(capacity=CAPACITY),),
            frozenset(),
        )
        known = shared_devices(inventory, [stored_instance(self.body)], self.features)
        claim.is_prepared |= any(device == claim.device for _, device in known)

    @precondition(lambda self: self.claims)
    @rule(data=st.data())
    def end_claim(self, data: st.DataObject) -> None:
        self.claims.remove(data.draw(st.sampled_from(self.claims)))

    def late(self) -> list[Claim]:
        """Those of a device that was withdrawn before: their pods are to be deleted by somebody."""
        return [c for c in self.claims if not c.is_prepared and c.device not in self.slices]

    # What holds

    @invariant()
    def no_use_is_granted_twice(self) -> None:
        prepared = [claim for claim in self.claims if claim.is_prepared]
        assert len(self.containers) + len(prepared) <= CAPACITY

    @invariant()
    def every_container_has_its_slot(self) -> None:
        assert {index for _, index in self.containers} == set(self.slots.holders)

    def teardown(self) -> None:
        """At rest all that nobody uses can be had, by the path that was wanted last."""
        for claim in self.late():
            self.claims.remove(claim)
        self.settle()
        used = len(self.claims) + len(self.containers)
        if self.path is DRA:
            assert len(list(self._free(self.slices))) == CAPACITY - used
        elif not self.claims:
            assert len(self.slots.available) == CAPACITY - used
            assert self.slices == {}
        else:
            assert self.slots.available == ()


Histories.TestCase.settings = settings(
    max_examples=80, stateful_step_count=40, deadline=None, phases=[Phase.generate]
)
TestHistories = Histories.TestCase
