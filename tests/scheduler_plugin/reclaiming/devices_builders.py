"""Devices, nodes and pods as the API server has them, and who waits for one of them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from driver.api import DRIVER_NAME
from scheduler_plugin.accounting.world import World
from scheduler_plugin.objects.claims import DeviceId
from scheduler_plugin.reclaiming.decisions import Decision, Take
from scheduler_plugin.reclaiming.device_wants import DeviceWant, device_want_of
from scheduler_plugin.reclaiming.devices import decide_device, is_device_due
from scheduler_plugin.reclaiming.evidence import Evidence, Unread
from scheduler_plugin.reclaiming.node_room import node_room, pod_needs
from scheduler_plugin.reclaiming.offers import device_request, offers
from scheduler_plugin.reclaiming.victims import Away
from tests.scheduler_plugin.builders import NOW, a_claim_object, a_pod_object, a_request, pod_uid

UNSCHEDULABLE = {
    "conditions": [{"type": "PodScheduled", "status": "False", "reason": "Unschedulable"}]
}


def a_device(name: str, *, slots: int | None = None, **fields: Any) -> dict[str, Any]:
    """A device of a slice; with slots, one that several requests share. `model` may be given."""
    attributes = {"model": {"string": fields.pop("model", "plain")}}
    shared = {} if slots is None else {"allowMultipleAllocations": True}
    capacity = {} if slots is None else {"capacity": {"slots": {"value": str(slots)}}}
    return {"name": name, "attributes": attributes, **shared, **capacity, **fields}


def a_slice_object(*devices: str | Mapping[str, Any], node: str = "n", **spec: Any) -> Any:
    """A complete pool of its node's name."""
    bodies = [a_device(d) if isinstance(d, str) else dict(d) for d in devices]
    place = {"nodeName": node} if node else {"allNodes": True}
    pool = {"name": node or "shared", "generation": 1, "resourceSliceCount": 1}
    return {"spec": {"driver": DRIVER_NAME, "pool": pool, **place, "devices": bodies, **spec}}


def a_node_object(name: str = "n", **fields: Any) -> dict[str, Any]:
    """A node with room for 4 CPUs and 10 pods."""
    return {
        "metadata": {"name": name, "labels": {"zone": "here", **fields.pop("labels", {})}},
        "spec": fields.pop("spec", {}),
        "status": {"allocatable": {"cpu": "4", "pods": "10", **fields.pop("allocatable", {})}},
    }


def device(name: str, node: str = "n") -> DeviceId:
    return DeviceId(DRIVER_NAME, node or "shared", name)


class Cluster:
    """What can be read beyond a world, which the tests make."""

    def __init__(self, world: World, *slices: Any, class_selectors: tuple[str, ...] = ()) -> None:
        self.world = world
        self.slices = slices
        self.class_selectors = class_selectors
        self.nodes: dict[str, Any] = {"n": a_node_object()}
        self.pods: dict[str, list[Any]] = {}
        self.request: dict[str, Any] = {}
        self.waiting: dict[str, Any] = {}
        self.read: list[str] = []
        self.known: Evidence | None = None

    def evidence(self, want: DeviceWant) -> Evidence:
        request = a_request(**self.request)
        claim = a_claim_object(want.claim.name, requests=[request])
        body = a_pod_object(want.pod.name, claims=[want.claim.name], **self.waiting)
        asked = device_request(claim, want.alternative.slots, self.class_selectors)
        return Evidence(needs=pod_needs(body, [claim]), request=asked, offers=offers(self.slices))

    def decide(self, name: str = "w", away: Away | None = None) -> Decision:
        """The decision about a pod that waits, with all that it asks to be read."""
        pod = self.world.facts.pod(pod_uid(name))
        assert pod is not None
        evidence: Evidence | None = None
        self.known = None
        for _ in range(30):
            steps = decide_device(pod, self.world, NOW, evidence, away or Away())
            found = list(steps)[-1]
            assert found is not None
            if not isinstance(found, Unread):
                self.known = evidence
                return found
            if evidence is None:
                want = device_want_of(pod, self.world)
                assert isinstance(want, DeviceWant)
                evidence = self.evidence(want)
                continue
            assert found.nodes, "it asks for what is not read yet"
            self.read += found.nodes
            evidence = evidence.with_nodes(
                {n: node_room(self.nodes[n], self._pods_on(n)) for n in found.nodes}
            )
        raise AssertionError("it asks for ever")

    def is_due(self, take: Take) -> bool:
        """Whether the last decision is still to be carried out."""
        assert self.known is not None
        return is_device_due(take, self.world, NOW, self.known, frozenset())

    def _pods_on(self, node: str) -> list[Any]:
        """Those of the world, which ask for nothing, and what else is said to be there."""
        used = (pod for pod in self.world.facts.pods() if pod.node == node)
        named = {pod["metadata"]["name"] for pod in self.pods.get(node, ())}
        bare = [a_pod_object(pod.name, node=node) for pod in used if pod.name not in named]
        return [*self.pods.get(node, ()), *bare]

    def taken(self, name: str = "w", away: Away | None = None) -> list[str]:
        decision = self.decide(name, away)
        return sorted(pod.name for pod in decision.pods) if isinstance(decision, Take) else []
