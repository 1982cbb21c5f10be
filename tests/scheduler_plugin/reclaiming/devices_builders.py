"""Devices, nodes and pods as the API server has them, and who waits for one of them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

from driver.api import DRIVER_NAME
from kube.cel.child_main import evaluated
from kube.cel.messages import FALSE, TRUE
from scheduler_plugin.accounting.world import World
from scheduler_plugin.judging.equivalence_classes import placement_class
from scheduler_plugin.objects.claim_objects import claim_view
from scheduler_plugin.objects.claims import ClaimView, ClassName, DeviceId
from scheduler_plugin.objects.names import QUEUE_LABEL
from scheduler_plugin.objects.node_requests import PODS
from scheduler_plugin.objects.nodes import node_view
from scheduler_plugin.objects.pod_needs import PodNeeds, PodOnNode
from scheduler_plugin.objects.pod_objects import pod_view
from scheduler_plugin.objects.pods import PodView
from scheduler_plugin.reclaiming.cycles import Cycle
from scheduler_plugin.reclaiming.due_targets import is_due
from scheduler_plugin.reclaiming.missed_nodes import LeftOut, MissedNodes
from scheduler_plugin.reclaiming.placement.demands import DeviceRequest, PodDemand, demands_of
from scheduler_plugin.reclaiming.placement.inventory import Inventory
from scheduler_plugin.reclaiming.placement.node_placements import NodePlacements
from scheduler_plugin.reclaiming.placement.published_slices import published_slice
from scheduler_plugin.reclaiming.targets import Decision, Targets
from scheduler_plugin.reclaiming.victims.victims import NONE_EXCLUDED, ExcludedPods
from tests.scheduler_plugin.builders import (
    NOW,
    SETTINGS,
    a_claim_object,
    a_pod,
    a_request,
    pod_uid,
)

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
    metadata = {"metadata": spec.pop("metadata")} if "metadata" in spec else {}
    found = {"driver": DRIVER_NAME, "pool": pool, **place, "devices": bodies, **spec}
    return {**metadata, "spec": found}


def a_node_object(name: str = "n", **fields: Any) -> dict[str, Any]:
    """A node with room for 4 CPUs and 10 pods."""
    labels = {"zone": "here", **fields.pop("labels", {})}
    ready = [{"type": "Ready", "status": "True"}]
    allocatable = {"cpu": "4", "pods": "10", **fields.pop("allocatable", {})}
    return {
        "metadata": {"name": name, "uid": f"uid-of-{name}", "labels": labels},
        "spec": fields.pop("spec", {}),
        "status": {"allocatable": allocatable, "conditions": ready},
    }


def device(name: str, node: str = "n") -> DeviceId:
    return DeviceId(DRIVER_NAME, node or "shared", name)


class Cluster:
    """Nodes and devices beside a world, which the tests make.

    Attributes:
        nodes: Node objects, by name.
        pods: Pods beside the world's, or instead of those of their names, by node.
        waiting: Fields of all pods that wait.
        keeps_needs: Whether they ask of nodes what they say themselves, and not that.
        request: What each claim of theirs asks for, unless `requests` says it of that claim.
        left_out: Nodes where such pods were not bound.
    """

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
        self.left_out: frozenset[str] = frozenset()
        self.keeps_needs = False
        self.cycle: Cycle | None = None

    def inventory(self) -> Inventory:
        """All of it as the watches bring it, with all selectors evaluated."""
        inventory = Inventory()
        for number, obj in enumerate(self.slices):
            metadata = {"name": f"slice-{number}", **obj.get("metadata", {})}
            inventory.devices.put_slice(published_slice({**obj, "metadata": metadata}))
        for name, obj in self.nodes.items():
            inventory.nodes.put_node(node_view(obj))
            for there in self._pods_on(name):
                inventory.nodes.put_pod(there)
        self._prepare()
        for pod in self._all_waiting():
            for demand in self._demands(pod):
                for ask in demand.device_requests:
                    _evaluate(inventory, ask)
        return inventory

    def _demands(self, pod: PodView) -> tuple[PodDemand, ...]:
        found = demands_of([pod], self.world)
        return found if not isinstance(found, str) else ()

    def _all_waiting(self) -> list[PodView]:
        return [pod for pod in self.world.facts.pods() if pod.may_be_bound]

    def _prepare(self) -> None:
        """Say of pods that wait, their claims and the class what the tests say."""
        for pod in self._all_waiting():
            if not self.keeps_needs:
                self.world.put_pod(replace(pod, needs=self._needs(pod)))
            for claim in self.world.facts.claims_of(pod):
                if not claim.is_allocated and self._requests(claim.name):
                    self.world.put_claim(self._asking(claim))
        found = self.world.facts.catalog.class_named(ClassName("onvif"))
        if found is not None and self.class_selectors:
            self.world.put_class(replace(found, selectors=self.class_selectors))

    def _needs(self, pod: PodView) -> PodNeeds | None:
        requests = {name: str(count) for name, count in pod.requests}
        fields = {"requests": requests, **self.waiting}
        return a_pod(pod.name, claims=pod.claim_names, **fields).needs

    def _requests(self, claim: str) -> list[Any]:
        given = [a_request(**self.request)] if self.request or self.constraints else []
        return self.requests.get(claim) or given

    def _asking(self, claim: ClaimView) -> ClaimView:
        obj = a_claim_object(claim.name, requests=self._requests(claim.name))
        obj["spec"]["devices"]["constraints"] = self.constraints
        view = claim_view(obj, queue_label=QUEUE_LABEL)
        return replace(claim, requests=view.requests, constraints=view.constraints)

    def placements(self, excluded: ExcludedPods) -> NodePlacements:
        inventory, missed = self.inventory(), MissedNodes()
        for pod in self._all_waiting():
            for node in self.left_out:
                missed.miss(placement_class(pod, self.world.facts), [node], NOW)
        return NodePlacements(self.world, inventory, excluded, LeftOut(self.world, missed, NOW))

    def decide(self, name: str = "w", excluded: ExcludedPods | None = None) -> Decision:
        """The decision about a pod that waits, alone in its cycle."""
        excluded = excluded or ExcludedPods()
        placements = self.placements(excluded)
        pod = self.world.facts.pod(pod_uid(name))
        assert pod is not None
        self.cycle = Cycle(self.world, NOW, excluded, placements)
        return self.cycle.serve(pod)

    def is_due(self, take: Targets) -> bool:
        """Whether the last decision is still to be carried out."""
        assert self.cycle is not None
        return is_due(take, self.world, NOW, NONE_EXCLUDED, self.cycle.queue_shares)

    def _pods_on(self, node: str) -> Iterator[PodOnNode]:
        """Those of the world, which ask for nothing, and what else is said to be there."""
        named = [a_pod_view(obj) for obj in self.pods.get(node, ())]
        for pod in self.world.facts.pods():
            if pod.node == node and pod.name not in {other.name for other in named}:
                yield PodOnNode(pod.uid, node, {PODS: 1000}, pod.deleting)
        for pod in named:
            if pod.on_node is not None:
                yield pod.on_node

    def taken(self, name: str = "w", excluded: ExcludedPods | None = None) -> list[str]:
        decision = self.decide(name, excluded)
        return sorted(pod.name for pod in decision.pods) if isinstance(decision, Targets) else []


def a_pod_view(obj: Any) -> PodView:
    return pod_view(obj, SETTINGS)


def _evaluate(inventory: Inventory, ask: DeviceRequest) -> None:
    """What the process that evaluates CEL would say, by the same library."""
    offers = [
        *filter(None, map(inventory.devices.offer, inventory.devices.of_drivers(ask.drivers)))
    ]
    while (missing := inventory.answers.missing(ask.criteria, offers)) is not None:
        answers = evaluated(list(missing.expressions), [offer.body for offer in missing.offers])
        inventory.answers.put(missing, [{TRUE: True, FALSE: False}.get(each) for each in answers])
