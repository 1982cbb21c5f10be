"""Whether a pod would fit on a node once others are gone from it, as kube-scheduler sees it.

What is not looked at puts the answer in doubt, and in doubt the pod does not fit: see `doubt_of`.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass

from driver.api import effective_requests
from scheduler_plugin.objects.fields import JsonObject
from scheduler_plugin.objects.names import PodUid
from scheduler_plugin.objects.requests import thousandths
from scheduler_plugin.reclaiming.places.node_selection import (
    HOSTNAME_LABEL,
    NodeTerms,
    node_terms,
    untolerated,
)

PODS = "pods"
"""The resource of which each pod takes one."""

Thousandths = Mapping[str, int]

_TERMINAL = ("Succeeded", "Failed")
_STATELESS = frozenset({"configMap", "secret", "emptyDir", "projected", "downwardAPI", "hostPath"})


@dataclass(frozen=True, slots=True, kw_only=True)
class PodNeeds:
    """What a pod asks of a node.

    Attributes:
        requests: By resource, in thousandths.
        labels: Labels that the node must have.
        selections: Each must match: its affinity, and where claims of it are allocated already.
        doubt: Why it cannot be said where the pod fits, as a part of a sentence; "" where it can.
    """

    requests: Thousandths
    labels: Mapping[str, str]
    selections: tuple[NodeTerms, ...]
    tolerations: tuple[JsonObject, ...]
    doubt: str = ""

    @property
    def names(self) -> frozenset[str]:
        """Nodes that it names."""
        host = self.labels.get(HOSTNAME_LABEL, "")
        return frozenset((host,)).union(*(terms.names for terms in self.selections))


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeRoom:
    """A node and what the pods on it ask for.

    Attributes:
        leaving: Those of its pods that are on their way out.
        repels: Whether a pod on it may keep others away by its labels.
    """

    name: str
    labels: Mapping[str, str]
    taints: tuple[JsonObject, ...]
    is_open: bool
    allocatable: Thousandths
    pods: Mapping[PodUid, Thousandths]
    leaving: frozenset[PodUid] = frozenset()
    repels: bool = False

    def why_not(
        self,
        needs: PodNeeds,
        gone: Collection[PodUid],
        asked: Thousandths,
        beside: Sequence[Thousandths] = (),
    ) -> str:
        """Why a pod does not fit once these are gone, as a part of a sentence; "" where it does.

        Args:
            needs: What it needs.
            gone: Pods that are not there any more.
            asked: What of its requests the node itself has to have.
            beside: The same of others that come.
        """
        if not self.is_open:
            return "takes no pods"
        if any(self.labels.get(key) != value for key, value in needs.labels.items()):
            return "is not one that its nodeSelector selects"
        if not all(terms.match(self.name, self.labels) for terms in needs.selections):
            return "is not one that its affinity, or its other claims, allow"
        if taint := untolerated(self.taints, needs.tolerations):
            return f'has the taint "{taint}", which it does not tolerate'
        lacks = self.lacks(asked, gone, beside)
        return f"has not enough {lacks} for it" if lacks else ""

    def lacks(
        self, asked: Thousandths, gone: Collection[PodUid], beside: Sequence[Thousandths]
    ) -> str:
        """Of what it has too little; "" for nothing."""
        return next((name for name, _ in self.missing(asked, gone, beside)), "")

    def missing(
        self, asked: Thousandths, gone: Collection[PodUid], beside: Sequence[Thousandths]
    ) -> Iterator[tuple[str, int]]:
        """Of what it has too little, and by how much."""
        stay = [each for uid, each in self.pods.items() if uid not in gone]
        for name, more in asked.items():
            used = sum(each.get(name, 0) for each in (*stay, *beside))
            if more and (over := used + more - self.allocatable.get(name, 0)) > 0:
                yield name, over


def pod_needs(pod: JsonObject, claims: Collection[JsonObject]) -> PodNeeds:
    """What a pod asks of a node, as the API server has the pod and its claims."""
    spec = pod["spec"]
    affinity = ((spec.get("affinity") or {}).get("nodeAffinity") or {}).get(
        "requiredDuringSchedulingIgnoredDuringExecution"
    )
    return PodNeeds(
        requests=asked_of_node(pod),
        labels=spec.get("nodeSelector") or {},
        selections=(node_terms(affinity), *_allocated(claims)),
        tolerations=tuple(spec.get("tolerations") or ()),
        doubt=doubt_of(spec),
    )


def _allocated(claims: Collection[JsonObject]) -> Iterator[NodeTerms]:
    for claim in claims:
        allocation = (claim.get("status") or {}).get("allocation")
        if allocation is not None:
            yield node_terms(allocation.get("nodeSelector"))


def doubt_of(spec: JsonObject) -> str:
    """What keeps from saying on which nodes a pod fits."""
    affinity = spec.get("affinity") or {}
    required = "requiredDuringSchedulingIgnoredDuringExecution"
    if any((affinity.get(kind) or {}).get(required) for kind in ("podAffinity", "podAntiAffinity")):
        return "its affinity to pods is not looked at"
    spreads = spec.get("topologySpreadConstraints") or ()
    if any(spread.get("whenUnsatisfiable") != "ScheduleAnyway" for spread in spreads):
        return "its topology spread is not looked at"
    if any(not _STATELESS & volume.keys() for volume in spec.get("volumes") or ()):
        return "its volumes are not looked at"
    containers = (*(spec.get("initContainers") or ()), *(spec.get("containers") or ()))
    if any(port.get("hostPort") for c in containers for port in c.get("ports") or ()):
        return "its host ports are not looked at"
    return ""


def asked_of_node(pod: JsonObject) -> Thousandths:
    """A pod's effective requests: of its containers or its own, and its overhead."""
    spec = pod["spec"]
    init = [(_of(c), c.get("restartPolicy") == "Always") for c in spec.get("initContainers") or ()]
    asked = effective_requests(init, [_of(c) for c in spec.get("containers") or ()])
    asked |= _of(spec)
    for name, amount in _amounts(spec.get("overhead") or {}).items():
        asked[name] = asked.get(name, 0) + amount
    return {**asked, PODS: 1000}


def _of(part: JsonObject) -> dict[str, int]:
    resources = part.get("resources") or {}
    return _amounts({**(resources.get("limits") or {}), **(resources.get("requests") or {})})


def _amounts(quantities: JsonObject) -> dict[str, int]:
    return {name: thousandths(quantity) or 0 for name, quantity in quantities.items()}


def node_room(node: JsonObject, pods: Collection[JsonObject]) -> NodeRoom:
    """A node, as the API server has it and the pods that are bound to it."""
    metadata, spec, status = node["metadata"], node.get("spec") or {}, node.get("status") or {}
    there = [pod for pod in pods if (pod.get("status") or {}).get("phase") not in _TERMINAL]
    leaving = (pod["metadata"] for pod in there if pod["metadata"].get("deletionTimestamp"))
    return NodeRoom(
        name=metadata["name"],
        labels=metadata.get("labels") or {},
        taints=tuple(spec.get("taints") or ()),
        is_open=not spec.get("unschedulable") and not metadata.get("deletionTimestamp"),
        allocatable=_amounts(status.get("allocatable") or {}),
        pods={PodUid(pod["metadata"]["uid"]): asked_of_node(pod) for pod in there},
        leaving=frozenset(PodUid(metadata["uid"]) for metadata in leaving),
        repels=any(_repels(pod["spec"]) for pod in there),
    )


def _repels(spec: JsonObject) -> bool:
    anti = (spec.get("affinity") or {}).get("podAntiAffinity") or {}
    return bool(anti.get("requiredDuringSchedulingIgnoredDuringExecution"))
