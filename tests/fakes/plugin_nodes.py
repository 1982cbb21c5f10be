"""Simulated nodes of the device-plugin path: a kubelet, and a driver that follows its docstrings.

The driver's part is the shell's procedure (`slots.allocation`, `slots.reconciliation`), step by
step, so that another step can come in between, and so that each can be the last of a process.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain
from typing import Any

from driver.api import NodeName
from driver.device_ids import DeviceKey, configuration_resource, instance_resource
from driver.device_plugin.containers.responses import Refused
from driver.device_plugin.kubelet.allocations import Given
from driver.device_plugin.slots.allocation import (
    Allocation,
    Offer,
    OfInstance,
    Plugin,
    plan_allocate,
)
from driver.device_plugin.slots.lists import configuration_devices, instance_devices
from driver.device_plugin.slots.preferences import preferred_devices
from driver.device_plugin.slots.reconciliation import SETTLED, Evidence, reconcile
from driver.instances.slots.node_pods import ListedDevice, Listing, NodePod, NodePods, PodName
from driver.instances.slots.slot_writes import SlotWrite, is_overtaken, undo
from driver.instances.slots.slots import InstanceSlots, by_name, instance_slots, slot_devices
from tests.driver.slot_builders import BOTH, CONFIGURATION, a_camera
from tests.fakes.killed import KilledError
from tests.fakes.slot_instances import ConflictError, FakeInstances

CAMERAS = {name: a_camera(name) for name in BOTH}


@dataclass
class Cluster:
    """The API server: Instances, pods, and a clock."""

    instances: FakeInstances
    pods: dict[str, NodePod] = field(default_factory=dict)
    nodes: dict[str, NodeName] = field(default_factory=dict)
    hidden: set[str] = field(default_factory=set)
    clock: float = 100.0
    created: int = 0

    def bind(self, name: str, node: NodeName, resource: str, amount: int, *, hidden: bool) -> None:
        """Create a pod; `hidden` ones ask for their devices in an init container only."""
        self.created += 1
        uid = f"uid-{self.created}"
        self.pods[name] = NodePod(PodName("default", name), uid, False, {resource: amount})
        self.nodes[name] = node
        if hidden:
            self.hidden.add(uid)

    def of(self, node: NodeName) -> list[NodePod]:
        return [pod for name, pod in self.pods.items() if self.nodes[name] == node]

    def finish(self, pod: NodePod) -> None:
        stored = self.pods.get(pod.name.name)
        if stored is not None and stored.uid == pod.uid:
            self.pods[pod.name.name] = replace(stored, finished=True)

    def runs(self, pod: NodePod) -> bool:
        stored = self.pods.get(pod.name.name)
        return stored is not None and stored.uid == pod.uid and not stored.finished


@dataclass
class Grant:
    """Devices that the kubelet was given for a pod."""

    pod: NodePod
    devices: tuple[DeviceKey, ...]
    moment: float


class FakeKubelet:
    """What a kubelet keeps: devices of pods in its checkpoint, and the last lists it was sent."""

    def __init__(self, cluster: Cluster, node: NodeName) -> None:
        self.cluster, self.node = cluster, node
        self.lists: dict[str, list[str]] = {}
        self.answered: list[Grant] = []
        self.entered: list[Grant] = []
        self.knows_its_pods = True

    def grants(self) -> list[Grant]:
        return [*self.answered, *self.entered]

    def devices(self) -> list[DeviceKey]:
        return [device for grant in self.grants() for device in grant.devices]

    def waiting(self) -> list[NodePod]:
        """Pods that are to be admitted."""
        known = {grant.pod.uid for grant in self.grants()}
        pods = self.cluster.of(self.node)
        return [p for p in pods if p.uid not in known and not p.finished]

    def enter(self) -> None:
        self.entered += self.answered
        self.answered.clear()

    def forget(self, gone: Callable[[Grant], bool]) -> None:
        self.answered = [g for g in self.answered if not gone(g)]
        self.entered = [g for g in self.entered if not gone(g)]

    def restart(self) -> None:
        """The checkpoint stays; what is answered and not entered is asked for again."""
        self.answered.clear()
        self.entered = [g for g in self.entered if self.cluster.runs(g.pod)]
        self.lists.clear()
        self.knows_its_pods = False

    def shown(self) -> list[Grant]:
        """What it lists: none of init containers; after a start, not yet those of all pods."""
        shown = [g for g in self.entered if g.pod.uid not in self.cluster.hidden]
        return shown if self.knows_its_pods else shown[::2]

    def listing(self) -> Listing:
        return Listing(
            self.cluster.clock,
            frozenset(ListedDevice(g.pod.name, "main", d) for g in self.shown() for d in g.devices),
        )


class FakeDriver:
    """One node's driver; everything but its name is lost with its process."""

    def __init__(self, cluster: Cluster, node: NodeName) -> None:
        self.cluster, self.node = cluster, node
        self.start()

    def start(self) -> None:
        self.store: dict[str, Any] = dict(self.cluster.instances.bodies)
        self.given = Given(lambda: self.cluster.clock)
        self.listing: Listing | None = None
        self.pods: NodePods | None = None
        self.decided: list[SlotWrite] = []
        self.faults: list[str] = []

    def watch(self, names: Iterable[str] | None = None) -> None:
        bodies = self.cluster.instances.bodies
        self.store.update({name: bodies[name] for name in names or bodies})

    def views(self) -> list[InstanceSlots]:
        return [instance_slots(body) for body in self.store.values()]

    def lists(self, *, unique_devices: bool) -> dict[str, list[str]]:
        """Healthy devices by resource."""
        views = self.views()
        lists = {
            instance_resource(v.name): instance_devices(v, self.node, online=True) for v in views
        }
        parts = (
            configuration_devices(v, self.node, online=True, unique_devices=unique_devices)
            for v in views
        )
        lists[configuration_resource(CONFIGURATION)] = tuple(sorted(chain.from_iterable(parts)))
        return {resource: [d.id for d in found if d.healthy] for resource, found in lists.items()}

    # Allocate

    def allocate(self, plugin: Plugin, ids: Sequence[str]) -> str:
        """Carry out one call; empty if granted, else why not."""
        self._note(plugin, ids)
        taken: list[SlotWrite] = []
        checked: set[str] = set()
        while True:
            self._step()
            plan = plan_allocate(plugin, [ids], self._offer())
            if isinstance(plan, Refused):
                return self._give_up(taken, plan.sentence)
            written = self._write_all(plan, taken)
            unchecked = set(plan.unwritten) - {w.instance for w in taken} - checked
            if written and not unchecked:
                self._step()
                self._note(plugin, ids)
                return ""
            checked |= unchecked
            self.watch(unchecked or None)

    def _note(self, plugin: Plugin, ids: Iterable[str]) -> None:
        self.given.note(DeviceKey(str(plugin), i) for i in ids)

    def _offer(self) -> Offer:
        return Offer(node=self.node, slots=by_name(self.views()), instances=CAMERAS)

    def _write_all(self, plan: Allocation, taken: list[SlotWrite]) -> bool:
        for write in plan.writes:
            if not self._write(write):
                return False
            taken.append(write)
            self._step()
        return True

    def _give_up(self, taken: Iterable[SlotWrite], sentence: str) -> str:
        for write in taken:
            while again := undo(write, instance_slots(self.store[write.instance])):
                self._step()
                if not self._write(again):
                    self.watch([write.instance])
        return sentence

    def _write(self, write: SlotWrite) -> bool:
        """Send until the outcome is known; own writes show in the store at once."""
        if self._fault() == "lost":
            return self._write(write)
        try:
            self.cluster.instances.write([write])
        except ConflictError:
            self.watch([write.instance])
            return False
        if self._fault() == "unanswered":
            return self._write(write)
        self.watch([write.instance])
        return True

    def _step(self) -> None:
        if self._fault() == "killed":
            raise KilledError

    def _fault(self) -> str:
        return self.faults.pop(0) if self.faults else ""

    # Reconciliation

    def see(self, listing: Listing) -> None:
        self.listing = listing
        views = self.views()
        held = [d for v in views for d in slot_devices(v, self.node).values()]
        self.given.note_users(listing, held)

    def decide(self) -> None:
        if self.pods is not None:
            evidence = Evidence(
                listing=self.listing,
                pods=self.pods,
                allocated=self.given.moments,
                users=self.given.users,
            )
            self.decided = list(reconcile(self.node, self.views(), evidence).writes)

    def read_pods(self) -> None:
        self.pods = NodePods(self.cluster.clock, tuple(self.cluster.of(self.node)))

    def carry_out(self) -> None:
        for write in self.decided:
            self._step()
            if not is_overtaken(write, self.given.moments):
                self._write(write)
        self.decided = []


class FakeNode:
    """A kubelet and a driver."""

    def __init__(self, cluster: Cluster, name: NodeName) -> None:
        self.cluster, self.name = cluster, name
        self.kubelet, self.driver = FakeKubelet(cluster, name), FakeDriver(cluster, name)

    def admit(self, pod: NodePod, plugin: Plugin, faults: Sequence[str]) -> str:
        """What the kubelet does with a new pod: choose devices, ask for them, or fail it."""
        healthy = self.kubelet.lists.get(str(plugin), [])
        taken = {d.id for d in self.kubelet.devices() if d.resource == str(plugin)}
        free = [device for device in healthy if device not in taken]
        amount = pod.requests[str(plugin)]
        chosen = preferred_devices(free, (), amount, by_name(self.driver.views()))
        refused = "not enough" if len(chosen) < amount else self._ask(plugin, chosen, faults)
        if refused:
            self.cluster.finish(pod)
        else:
            devices = tuple(DeviceKey(str(plugin), device) for device in chosen)
            self.kubelet.answered.append(Grant(pod, devices, self.cluster.clock))
        return refused

    def _ask(self, plugin: Plugin, chosen: Sequence[str], faults: Sequence[str]) -> str:
        self.driver.faults = list(faults)
        try:
            return self.driver.allocate(plugin, chosen)
        except KilledError:
            self.driver.start()
            return "killed"
        finally:
            self.driver.faults = []

    def carry_out(self, faults: Sequence[str]) -> None:
        self.driver.faults = list(faults)
        try:
            self.driver.carry_out()
        except KilledError:
            self.driver.start()
        self.driver.faults = []

    def settle(self) -> None:
        """One undisturbed pass."""
        self.kubelet.enter()
        self.driver.watch()
        self.driver.see(self.kubelet.listing())
        self.driver.read_pods()
        self.driver.decide()
        self.carry_out(())

    def slots_of(self, device: DeviceKey) -> list[str]:
        """The slots that the API server shows for a device of this node."""
        return [
            f"{slots.name}-{index}"
            for slots in self.cluster.instances.views()
            for index, held in slot_devices(slots, self.name).items()
            if held == device
        ]


def let_pass(cluster: Cluster, nodes: Iterable[FakeNode], seconds: float) -> None:
    """Time goes by; a kubelet enters what it was answered before that is `SETTLED` ago."""
    cluster.clock += seconds
    for node in nodes:
        if any(cluster.clock - g.moment >= SETTLED for g in node.kubelet.answered):
            node.kubelet.enter()


def plugin_of(resource: str, configuration: Plugin) -> Plugin:
    """The plugin that serves a resource."""
    plugins = [configuration, *(OfInstance(name) for name in BOTH)]
    return next(plugin for plugin in plugins if str(plugin) == resource)
