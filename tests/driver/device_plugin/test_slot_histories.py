"""Histories of slots: no order of events grants one twice or loses one.

Several nodes see two devices. Pods come and go in every way, watches lag, writes conflict or stay
unanswered, drivers and kubelets are killed between any two steps, and names of pods come again.
"""

from __future__ import annotations

from itertools import count

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from driver.device_ids import configuration_resource, instance_resource
from driver.device_plugin.slots.allocation import OfConfiguration, OfInstance
from tests.driver.slot_builders import CAMERA_1, CAMERA_2, CONFIGURATION, NODE_A, NODE_B, NODE_C
from tests.fakes.plugin_nodes import Cluster, FakeNode, Grant, let_pass, plugin_of
from tests.fakes.slot_instances import FakeInstances

NODES = (NODE_A, NODE_B, NODE_C)
RESOURCES = (
    configuration_resource(CONFIGURATION),
    instance_resource(CAMERA_1),
    instance_resource(CAMERA_2),
)

which = st.integers(0, len(NODES) - 1)
cameras = st.sampled_from([CAMERA_1, CAMERA_2])
faults = st.lists(st.sampled_from(["", "", "", "lost", "unanswered", "killed"]), max_size=8)
often = st.sampled_from([True, True, True, False])


class Histories(RuleBasedStateMachine):
    """Three nodes and an API server."""

    def __init__(self) -> None:
        super().__init__()
        self.cluster = Cluster(FakeInstances.of(CAMERA_1, CAMERA_2))
        self.nodes = [FakeNode(self.cluster, name) for name in NODES]
        self.unique = True
        self.was_per_slot = False
        for node in self.nodes:
            self.send(node)

    def send(self, node: FakeNode) -> None:
        node.kubelet.lists = node.driver.lists(unique_devices=self.unique)

    # Pods

    def create(self, data: st.DataObject, node: FakeNode) -> None:
        """Names come again as soon as they are free, as those of a StatefulSet do."""
        name = next(n for n in map("web-{}".format, count()) if n not in self.cluster.pods)
        resource = data.draw(st.sampled_from(RESOURCES))
        amount, hidden = data.draw(st.integers(1, 2)), not data.draw(often)
        self.cluster.bind(name, node.name, resource, amount, hidden=hidden)

    @rule(data=st.data(), index=which, up_to_date=st.booleans(), faults=faults)
    def admit(self, data: st.DataObject, index: int, up_to_date: bool, faults: list[str]) -> None:
        """A pod that waits, or a new one."""
        node = self.nodes[index]
        if up_to_date:
            node.driver.watch()
            self.send(node)
        if not node.kubelet.waiting():
            self.create(data, node)
        if node.kubelet.knows_its_pods:
            pod = node.kubelet.waiting()[0]
            configuration = OfConfiguration(CONFIGURATION, unique_devices=self.unique)
            node.admit(pod, plugin_of(next(iter(pod.requests)), configuration), faults)

    @rule(data=st.data(), index=which, up_to_date=st.booleans())
    def admit_during_a_pass(self, data: st.DataObject, index: int, up_to_date: bool) -> None:
        """The evidence is read before the pod, and what it led to is carried out afterwards."""
        self.wait(1.1)
        self.look(index, "both")
        self.admit(data, index, up_to_date, [])
        self.nodes[index].carry_out([])

    def granted(self) -> list[tuple[FakeNode, Grant]]:
        return [(node, grant) for node in self.nodes for grant in node.kubelet.entered]

    @precondition(lambda self: any(node.kubelet.answered for node in self.nodes))
    @rule()
    def enter(self) -> None:
        for node in self.nodes:
            node.kubelet.enter()

    @precondition(lambda self: self.granted())
    @rule(data=st.data(), how=st.sampled_from(["finish", "delete", "force"]), at_once=often)
    def end(self, data: st.DataObject, how: str, at_once: bool) -> None:
        """Completed, failed or evicted; deleted; deleted by force. The kubelet may be slow."""
        node, grant = data.draw(st.sampled_from(self.granted()))
        self.end_one(node, grant, how, at_once=at_once)

    def end_one(self, node: FakeNode, grant: Grant, how: str, *, at_once: bool) -> None:
        """Not slowly with devices that are not listed: the pod's phase is then all there is to see.

        A kubelet that does not know all its pods yet gives none of their devices away either.
        """
        if how == "finish":
            self.cluster.finish(grant.pod)
        elif self.cluster.runs(grant.pod):
            del self.cluster.pods[grant.pod.name.name]
        if at_once or how == "delete" or grant not in node.kubelet.shown():
            self.forget(node)

    @rule(index=which, remove=st.booleans())
    def notice(self, index: int, remove: bool) -> None:
        """A slow kubelet sees which of its pods are gone; finished ones may be removed."""
        self.forget(self.nodes[index])
        for name in [n for n, pod in self.cluster.pods.items() if pod.finished and remove]:
            del self.cluster.pods[name]

    def forget(self, node: FakeNode) -> None:
        node.kubelet.forget(lambda grant: not self.cluster.runs(grant.pod))

    # Drivers and kubelets

    @rule(index=which)
    def watch(self, index: int) -> None:
        self.nodes[index].driver.watch()
        self.send(self.nodes[index])

    @rule(index=which, what=st.sampled_from(["list", "pods", "both", "decide"]))
    def look(self, index: int, what: str) -> None:
        """Read the evidence, or one piece of it, so that something happens before the other."""
        driver, kubelet = self.nodes[index].driver, self.nodes[index].kubelet
        if what in ("list", "both"):
            driver.see(kubelet.listing())
        if what in ("pods", "both"):
            driver.read_pods()
        driver.decide()

    @precondition(lambda self: any(node.driver.decided for node in self.nodes))
    @rule(faults=faults)
    def carry_out(self, faults: list[str]) -> None:
        for node in self.nodes:
            node.carry_out(faults)

    @rule(index=which, faults=faults)
    def reconcile(self, index: int, faults: list[str]) -> None:
        self.look(index, "both")
        self.nodes[index].carry_out(faults)

    @rule(index=which, what=st.sampled_from(["driver", "kubelet", "kubelet, slowly"]))
    def restart(self, index: int, what: str) -> None:
        if what == "driver":
            self.nodes[index].driver.start()
        else:
            self.nodes[index].kubelet.restart()
        if what == "kubelet":
            self.learn_pods()

    @precondition(lambda self: not all(node.kubelet.knows_its_pods for node in self.nodes))
    @rule()
    def learn_pods(self) -> None:
        for node in self.nodes:
            node.kubelet.knows_its_pods = True
            self.send(node)

    @rule(seconds=st.sampled_from([0.1, 0.6, 1.1]))
    def wait(self, seconds: float) -> None:
        let_pass(self.cluster, self.nodes, seconds)

    # People

    @rule(camera=cameras, capacity=st.integers(0, 4))
    def change_configuration(self, camera: str, capacity: int) -> None:
        if capacity:
            self.cluster.instances.edit(camera, capacity=capacity)
        else:
            self.unique = not self.unique
            self.was_per_slot = True

    @rule(camera=cameras, slot=st.integers(0, 3), value=st.sampled_from([*NODES, None]))
    def edit_by_hand(self, camera: str, slot: int, value: str | None) -> None:
        """A slot that no device has; `clear_by_hand` is about the others."""
        name = f"{camera}-{slot}"
        used = {s for n in self.nodes for d in n.kubelet.devices() for s in n.slots_of(d)}
        if name not in used:
            self.cluster.instances.by_hand(name, value)

    @precondition(lambda self: self.listed())
    @rule(data=st.data())
    def clear_by_hand(self, data: st.DataObject) -> None:
        """And the node that uses the slot is the first to notice."""
        node, grant = data.draw(st.sampled_from(self.listed()))
        within = {
            f"{i.name}-{n}" for i in self.cluster.instances.views() for n in range(i.capacity)
        }
        for slot in within.intersection(node.slots_of(grant.devices[0])):
            self.cluster.instances.by_hand(slot, None)
        node.settle()

    def listed(self) -> list[tuple[FakeNode, Grant]]:
        """Grants of running pods that their kubelet lists."""
        return [
            (node, grant)
            for node, grant in self.granted()
            if node.kubelet.knows_its_pods
            and self.cluster.runs(grant.pod)
            and grant.pod.uid not in self.cluster.hidden
        ]

    # What must hold

    @invariant()
    def every_device_in_use_has_one_slot(self) -> None:
        for node in self.nodes:
            devices = node.kubelet.devices()
            assert len(devices) == len(set(devices))
            for device in devices:
                assert len(node.slots_of(device)) == 1, device

    @precondition(lambda self: not self.was_per_slot)
    @invariant()
    def an_instance_is_used_once_per_node_through_the_configuration(self) -> None:
        values = [v for v in self.cluster.instances.usage().values() if v.startswith("C:")]
        assert len(values) == len(set(values))

    def teardown(self) -> None:
        """All pods end, and every slot is free."""
        for pod in self.cluster.pods.values():
            self.cluster.finish(pod)
        for node in self.nodes:
            node.kubelet.restart()
            node.kubelet.knows_its_pods = True
        let_pass(self.cluster, self.nodes, 2)
        for node in [*self.nodes, *self.nodes]:
            node.settle()
        assert self.cluster.instances.usage() == {}


TestHistories = Histories.TestCase
TestHistories.settings = settings(max_examples=75, stateful_step_count=50, deadline=None)


def test_a_pod_that_ends_while_its_kubelet_does_not_know_it_uses_no_device() -> None:
    """Found by the machine: a kubelet that was started anew lists the first of two pods only."""
    history = Histories()
    node = history.nodes[0]
    for name, camera in (("web-0", CAMERA_1), ("web-1", CAMERA_2)):
        history.cluster.bind(name, node.name, instance_resource(camera), 1, hidden=False)
        assert not node.admit(node.kubelet.waiting()[0], OfInstance(camera), ())
    history.wait(1.1)
    history.restart(0, "kubelet, slowly")
    history.end_one(node, node.kubelet.entered[1], "finish", at_once=False)

    history.reconcile(0, [])

    history.every_device_in_use_has_one_slot()
    assert history.cluster.instances.usage() == {f"{CAMERA_1}-0": NODE_A}
