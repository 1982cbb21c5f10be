"""Nodes and what pods take of them, against a model that adds everything up for each question."""

from __future__ import annotations

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from scheduler_plugin.objects.names import PodUid
from scheduler_plugin.objects.node_requests import Thousandths
from scheduler_plugin.objects.nodes import NodeView
from scheduler_plugin.objects.pod_needs import PodOnNode
from scheduler_plugin.reclaiming.placement.nodes import Nodes

NAMES = ("n", "m")
UIDS = tuple(map(PodUid, "abcd"))
AMOUNTS = st.dictionaries(st.sampled_from(["cpu", "memory", "pods"]), st.integers(0, 3))
GONE = st.lists(st.sampled_from(UIDS))


def a_node(name: str, **allocatable: int) -> NodeView:
    return NodeView(name=name, labels={}, allocatable=allocatable)


def a_pod_on(node: str, uid: str, *, is_terminating: bool = False, **asked: int) -> PodOnNode:
    return PodOnNode(PodUid(uid), node, asked, is_terminating)


def summed(*parts: Thousandths) -> dict[str, int]:
    names = {name for part in parts for name in part}
    sums = {name: sum(part.get(name, 0) for part in parts) for name in names}
    return {name: amount for name, amount in sums.items() if amount}


class NodesMachine(RuleBasedStateMachine):
    """Facts in any order: a pod before its node, moved, replaced, taken out twice."""

    def __init__(self) -> None:
        super().__init__()
        self.nodes = Nodes()
        self.views: dict[str, NodeView] = {}
        self.pods: dict[PodUid, PodOnNode] = {}

    @rule(name=st.sampled_from(NAMES), allocatable=AMOUNTS)
    def put_node(self, name: str, allocatable: dict[str, int]) -> None:
        view = a_node(name, **allocatable)
        self.nodes.put_node(view)
        self.views[name] = view

    @rule(name=st.sampled_from(NAMES))
    def delete_node(self, name: str) -> None:
        self.nodes.delete_node(name)
        self.views.pop(name, None)

    @rule(
        uid=st.sampled_from(UIDS),
        node=st.sampled_from(NAMES),
        asked=AMOUNTS,
        is_terminating=st.booleans(),
    )
    def put_pod(self, uid: PodUid, node: str, asked: dict[str, int], is_terminating: bool) -> None:
        pod = PodOnNode(uid, node, asked, is_terminating)
        self.nodes.put_pod(pod)
        self.pods[uid] = pod

    @rule(uid=st.sampled_from(UIDS))
    def put_same_pod(self, uid: PodUid) -> None:
        if uid in self.pods:
            self.nodes.put_pod(self.pods[uid]._replace())

    @rule(uid=st.sampled_from(UIDS))
    def delete_pod(self, uid: PodUid) -> None:
        self.nodes.delete_pod(uid)
        self.pods.pop(uid, None)

    @rule(asked=AMOUNTS, gone=GONE, beside=st.lists(AMOUNTS, max_size=2))
    def ask_what_it_lacks(
        self, asked: dict[str, int], gone: list[PodUid], beside: list[dict[str, int]]
    ) -> None:
        for name in NAMES:
            stay = [p.asked for p in self._on(name) if p.uid not in gone]
            used = summed(*stay, *beside)
            has = self.views[name].allocatable if name in self.views else {}
            expected = [
                resource
                for resource, more in asked.items()
                if more and used.get(resource, 0) + more > has.get(resource, 0)
            ]
            assert self.nodes.lacks(name, asked, set(gone), beside) == next(iter(expected), "")

    @invariant()
    def answers_are_the_model_s(self) -> None:
        assert set(self.nodes) == self.views.keys()
        for name in NAMES:
            there = self._on(name)
            assert self.nodes.get(name) == self.views.get(name)
            assert set(self.nodes.pods_on(name)) == {pod.uid for pod in there}
            assert self.nodes.used(name) == summed(*(pod.asked for pod in there))
            assert self.nodes.terminating(name) == {pod.uid for pod in there if pod.is_terminating}

    def _on(self, name: str) -> list[PodOnNode]:
        return [pod for pod in self.pods.values() if pod.node == name]


TestNodes = NodesMachine.TestCase


def test_a_node_lacks_what_it_has_too_little_of_once_pods_are_gone() -> None:
    nodes = Nodes()
    nodes.put_node(a_node("n", cpu=4000, pods=2000))
    nodes.put_pod(a_pod_on("n", "a", cpu=3000, pods=1000))
    nodes.put_pod(a_pod_on("n", "b", cpu=1000, pods=1000))
    asked = {"cpu": 2000, "pods": 1000}

    assert nodes.lacks("n", asked) == "cpu"
    assert nodes.lacks("n", {"pods": 1000}) == "pods"
    assert nodes.lacks("n", asked, {PodUid("b")}) == "cpu"
    assert nodes.lacks("n", asked, {PodUid("a"), PodUid("elsewhere")}) == ""
    assert nodes.lacks("n", asked, {PodUid("a")}, [{"cpu": 2000}]) == "cpu"
