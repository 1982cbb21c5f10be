"""Histories of a device between two paths: no use is granted twice, none is lost at rest.

Nodes give slots away, each from a view that may be old; what is left is published, and
kube-scheduler allocates what it saw a while ago. All may be killed between any two steps, and the
path changes at any time.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import Any

from hypothesis import Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from driver.api import NODE_LABEL, DeviceName, NodeName
from driver.device_ids import slot_id
from driver.device_plugin.containers.responses import Refused
from driver.device_plugin.slots.allocation import Offer, OfInstance, plan_allocate
from driver.instances.inventory import Inventory, withdrawn
from driver.instances.shared_paths import plan_paths
from driver.instances.slots.slot_writes import slot_write
from driver.instances.slots.slots import InstanceSlots, instance_slots
from driver.instances.stored.objects import stored_instance
from driver.instances.unseen_instances import observed_instance
from driver.names import attribute_value
from driver.offer_paths import OfferPath
from driver.publishing.desired.deductions import held_slots
from driver.publishing.desired.next_publication import publish
from driver.publishing.desired.publication import (
    Supply,
    claimable_instances,
    local_supply,
    publication_of,
)
from driver.publishing.desired.shared_pools import Nodes, shared_devices, shared_supply
from driver.publishing.desired.slices import Features
from tests.driver.builders import NOW, a_configuration
from tests.driver.slot_builders import (
    CAMERA_1,
    CONFIGURATION,
    NODE_A,
    NODE_B,
    a_camera,
    an_instance_object,
)
from tests.fakes.slot_instances import ConflictError, FakeInstances

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


class Camera(RuleBasedStateMachine):
    """A camera of three slots: who uses it, what claims can have, and what holds."""

    label: str = ""
    seen_by: tuple[NodeName, ...] = (NODE_A, NODE_B)

    def __init__(self) -> None:
        super().__init__()
        self.now = NOW
        body = an_instance_object(CAMERA_1, capacity=CAPACITY, nodes=list(self.seen_by))
        times = {"creationTimestamp": NOW.isoformat(), "labels": {NODE_LABEL: self.label}}
        self.stored = FakeInstances({**body, "metadata": {**body["metadata"], **times}})
        self.containers: set[tuple[NodeName, int]] = set()
        self.claims: list[Claim] = []
        self.slices: Mapping[DeviceName, Any] = {}
        self.seen: Mapping[DeviceName, Any] = {}
        self.path = DEVICE_PLUGIN
        self.features = MODES[0]
        configuration = a_configuration(CONFIGURATION, capacity=CAPACITY)
        camera = a_camera(capacity=CAPACITY, shared=not self.label)
        self.inventory = Inventory({CONFIGURATION: configuration}, (camera,), frozenset())
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

    # Whoever publishes

    @rule()
    def restart(self) -> None:
        """Killed and started: what is stored is all that is known."""
        self.view = self.body
        self.written = publication_of((body, None) for body in self.slices.values())
        self.forget()

    def forget(self) -> None:
        """What else a process knows that has just started: nothing."""

    @precondition(lambda self: not self.late())
    @rule(path=paths)
    def move(self, path: OfferPath) -> None:
        self.path = path
        self.restart()

    @rule(knows_claims=st.booleans(), is_killed=st.booleans())
    def publish(self, knows_claims: bool, is_killed: bool) -> None:
        """A pass; who is killed in it has written or not."""
        self.now += timedelta(milliseconds=1)
        allocated = {DeviceName(c.device) for c in self.claims} if knows_claims else None
        self.written = publish(
            self.supply(), self.written, self.features, allocated=allocated, now=self.now
        )
        self.slices = {name: offer.body for name, offer in self.written.offers.items()}
        self.decided(allocated)
        if is_killed:
            self.restart()

    def decided(self, allocated: Collection[DeviceName] | None) -> None:
        """What a pass leads to beside what is written."""

    @rule()
    def settle(self) -> None:
        """Time for all that it wants to do."""
        for _ in range(4):
            self.view = self.body
            self.publish(knows_claims=True, is_killed=False)
            self.turn()

    def turn(self) -> None:
        """Another part of what it does."""

    def supply(self) -> Supply:
        raise NotImplementedError

    # Slots

    def give(self, node: NodeName, index: int, view: InstanceSlots) -> bool:
        """An Allocate, by what the driver knows; False where that was too old to decide."""
        if (node, index) in self.containers:
            return True
        offer = Offer(
            node=node,
            slots={CAMERA_1: view},
            instances={i.name: i for i in self.inventory.instances},
        )
        plan = plan_allocate(OfInstance(CAMERA_1), [[slot_id(CAMERA_1, index)]], offer)
        if isinstance(plan, Refused):
            return True
        if not plan.writes and view.resource_version != self.slots.resource_version:
            return False
        try:
            self.stored.write(plan.writes)
        except ConflictError:
            return False
        self.containers.add((node, index))
        return True

    @precondition(lambda self: self.containers)
    @rule(data=st.data())
    def end_container(self, data: st.DataObject) -> None:
        """Its slot is freed by the node, whatever path that is on by then."""
        node, index = data.draw(st.sampled_from(sorted(self.containers)))
        self.containers.remove((node, index))
        self.stored.write([slot_write(self.slots, node, {index: None})])

    # Claims

    @rule()
    def watch_slices(self) -> None:
        self.seen = self.slices

    @rule(up_to_date=st.booleans())
    def allocate(self, up_to_date: bool) -> None:
        """As kube-scheduler does, by slices that may have changed since it saw them."""
        if up_to_date:
            self.watch_slices()
        if device := next(self.free(self.seen), None):
            self.claims.append(Claim(device))

    def free(self, slices: Mapping[DeviceName, Any]) -> Iterator[str]:
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
        claim.is_prepared |= claim.device in self.preparable()

    def preparable(self) -> Collection[str]:
        raise NotImplementedError

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

    def available(self) -> int:
        """Slots that can be had."""
        raise NotImplementedError

    def teardown(self) -> None:
        """At rest all that nobody uses can be had, by the path that was wanted last."""
        for claim in self.late():
            self.claims.remove(claim)
        self.settle()
        left = CAPACITY - len(self.claims) - len(self.containers)
        if self.path is DRA:
            assert len(list(self.free(self.slices))) == left
        elif self.claims:
            assert self.available() == 0
            assert {claim.device for claim in self.claims} <= set(self.preparable())
        else:
            assert self.available() == left
            assert self.slices == {}


def merged(metadata: Mapping[str, Any], patch: Mapping[str, Any]) -> dict[str, Any]:
    """As the API server merges a patch (RFC 7386): null takes an annotation away."""
    annotations = {**(metadata.get("annotations") or {}), **(patch.get("annotations") or {})}
    kept = {name: text for name, text in annotations.items() if text is not None}
    return {**metadata, **patch, "annotations": kept}


class SharedCamera(Camera):
    """Two nodes give slots away, and the shared driver publishes."""

    def __init__(self) -> None:
        super().__init__()
        self.views = dict.fromkeys(self.seen_by, self.body)

    @rule(node=nodes, index=st.integers(0, CAPACITY - 1), up_to_date=st.booleans())
    def allocate_slot(self, node: NodeName, index: int, up_to_date: bool) -> None:
        """The kubelet chose a slot by a list that may be old, as what the driver knows may be."""
        if up_to_date:
            self.views[node] = self.body
        while not self.give(node, index, instance_slots(self.views[node])):
            self.views[node] = self.body

    def forget(self) -> None:
        self.claimed: frozenset[str] | None = None

    @rule()
    def watch(self) -> None:
        self.view = self.body

    def decided(self, allocated: Collection[DeviceName] | None) -> None:
        self.claimed = claimable_instances(self.written, allocated)

    @rule()
    def turn(self) -> None:
        """A pass over the Instances; somebody may have written first."""
        for decision in plan_paths([observed_instance(self.view)], self.path, self.claimed):
            metadata = decision.patch["metadata"]
            current = self.body["metadata"]
            if metadata["resourceVersion"] == current["resourceVersion"]:
                version = str(int(current["resourceVersion"]) + 1)
                changed = merged(current, metadata) | {"resourceVersion": version}
                self.stored.bodies[CAMERA_1] = {**self.body, "metadata": changed}
            self.view = self.body

    def supply(self) -> Supply:
        if self.path is not DRA:
            return Supply()
        configuration = self.inventory.configurations[CONFIGURATION]
        return shared_supply(configuration, [observed_instance(self.view)], PLACES)

    def preparable(self) -> Collection[str]:
        known = shared_devices(self.inventory, [stored_instance(self.body)], self.features)
        return {device for _, device in known}

    def available(self) -> int:
        return len(self.slots.available)


class LocalCamera(Camera):
    """One node has it, whose driver does both; one at a time runs (`disk_path_lock`)."""

    label: str = NODE_A
    seen_by: tuple[NodeName, ...] = (NODE_A,)

    def forget(self) -> None:
        self.is_decided = False

    def decided(self, allocated: Collection[DeviceName] | None) -> None:
        self.is_decided = True

    @precondition(lambda self: self.is_decided and self.path is DEVICE_PLUGIN)
    @rule(index=st.integers(0, CAPACITY - 1))
    def allocate_slot(self, index: int) -> None:
        assert self.give(NODE_A, index, self._offered()), "nobody else writes"

    def _offered(self) -> InstanceSlots:
        kept = replace(self.written, offers=self.written.absent)
        claimed = attribute_value(CAMERA_1) in kept.shown_instances
        return replace(self.slots, claimable=claimed)

    def supply(self) -> Supply:
        if self.path is not DRA:
            return local_supply(withdrawn(self.inventory))
        held = held_slots([stored_instance(self.view)])
        return replace(local_supply(self.inventory), held=held)

    def preparable(self) -> Collection[str]:
        return self.written.offers.keys() if self.is_decided else ()

    def available(self) -> int:
        return len(self._offered().available)


QUICK = settings(max_examples=60, stateful_step_count=40, deadline=None, phases=[Phase.generate])
SharedCamera.TestCase.settings = LocalCamera.TestCase.settings = QUICK
TestSharedCamera = SharedCamera.TestCase
TestLocalCamera = LocalCamera.TestCase
