"""Devices, nodes and pods as the API server has them, and who waits for one of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from driver.api import DRIVER_NAME
from kube.cel.child_main import evaluated
from kube.cel.messages import FALSE, TRUE
from scheduler_plugin.accounting.world import World
from scheduler_plugin.objects.claims import DeviceId
from scheduler_plugin.objects.pods import PodView
from scheduler_plugin.reclaiming.decisions import Decision, Take
from scheduler_plugin.reclaiming.device_wants import Ask, Seeker
from scheduler_plugin.reclaiming.devices import decide_device, is_device_due
from scheduler_plugin.reclaiming.places.evidence import Evidence, Known, Unread
from scheduler_plugin.reclaiming.places.node_room import PodNeeds, node_room, pod_needs
from scheduler_plugin.reclaiming.places.offers import (
    DeviceRequest,
    Offer,
    by_node,
    class_request,
    device_request,
    offers,
)
from scheduler_plugin.reclaiming.room_places import decide_room
from scheduler_plugin.reclaiming.victims.victims import Away
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
        self.requests: dict[str, list[Any]] = {}
        self.constraints: list[Any] = []
        self.waiting: dict[str, Any] = {}
        self.read: list[str] = []
        self.known: Evidence | None = None

    def evidence(self, seekers: Sequence[Seeker]) -> Evidence:
        found = offers(self.slices)
        asks = dict.fromkeys(ask for seeker in seekers for ask in seeker.asks)
        return Evidence(
            needs={seeker.pod.uid: self._needs(seeker.pod) for seeker in seekers},
            requests={ask: self._request(ask) for ask in asks},
            offers=found,
            on=by_node(found),
            refused={ask: _refused(self._request(ask), found) for ask in asks},
            accepted={ask: {} for ask in asks},
        )

    def _needs(self, pod: PodView) -> PodNeeds:
        requests = {name: str(count) for name, count in pod.requests}
        fields = {"requests": requests, **self.waiting}
        body = a_pod_object(pod.name, claims=pod.claim_names, **fields)
        return pod_needs(body, [])

    def _request(self, ask: Ask) -> DeviceRequest:
        if not ask.claim:
            return class_request(self.class_selectors)
        requests = self.requests.get(ask.claim) or [a_request(**self.request)]
        claim = a_claim_object(ask.claim, requests=requests)
        claim["spec"]["devices"]["constraints"] = self.constraints
        return device_request(claim, ask.alternative, self.class_selectors)

    def decide(
        self, name: str = "w", away: Away | None = None, *, for_room: bool = False
    ) -> Decision:
        """The decision about a pod that waits, with all that it asks to be read."""
        pod = self.world.facts.pod(pod_uid(name))
        assert pod is not None
        self.known, decision = None, None
        decide, known = (decide_room if for_room else decide_device), Known()
        for found in decide(pod, self.world, NOW, known, away or Away()):
            if not isinstance(found, Unread):
                decision = found
            elif known.evidence is None:
                known.evidence = self.evidence(found.seekers)
            else:
                assert found.nodes, "it asks for what is not read yet"
                self.read += found.nodes
                known.evidence = known.evidence.with_nodes(
                    {n: node_room(self.nodes[n], self._pods_on(n)) for n in found.nodes}
                )
        assert decision is not None
        self.known = known.evidence
        return decision

    def is_due(self, take: Take) -> bool:
        """Whether the last decision is still to be carried out."""
        assert self.known is not None
        return is_device_due(take, self.world, NOW, self.known)

    def _pods_on(self, node: str) -> list[Any]:
        """Those of the world, which ask for nothing, and what else is said to be there."""
        used = (pod for pod in self.world.facts.pods() if pod.node == node)
        named = {pod["metadata"]["name"] for pod in self.pods.get(node, ())}
        bare = [a_pod_object(pod.name, node=node) for pod in used if pod.name not in named]
        return [*self.pods.get(node, ()), *bare]

    def taken(
        self, name: str = "w", away: Away | None = None, *, for_room: bool = False
    ) -> list[str]:
        decision = self.decide(name, away, for_room=for_room)
        return sorted(pod.name for pod in decision.pods) if isinstance(decision, Take) else []


def _refused(
    request: DeviceRequest, found: Mapping[DeviceId, Offer]
) -> dict[DeviceId, bool | None]:
    """What the process that evaluates CEL says, by the same library."""
    texts = [text for selectors in request.selectors for text in selectors if text is not None]
    answers = evaluated(texts, [offer.body for offer in found.values()])
    meant = {TRUE: True, FALSE: False}
    return {d: meant.get(a) for d, a in zip(found, answers, strict=True) if a != TRUE}
