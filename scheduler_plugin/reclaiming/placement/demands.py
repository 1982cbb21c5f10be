"""The demands of pods on nodes: devices for their claims and for their own requests.

kube-scheduler does not call the extender about a pod that lacks a device, since its own filter
comes first. So the pod's status is used: it was tried, and it has claims or requests slots. The
reason of the refusal is only a text and is not read; the devices show what is lacking.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import product
from math import prod

from scheduler_plugin.accounting.world_views import WorldView
from scheduler_plugin.objects.claims import Alternative, ClaimView, ClassName
from scheduler_plugin.objects.devices.resource_names import LEGACY_PREFIX
from scheduler_plugin.objects.names import NO_POD, PodUid
from scheduler_plugin.objects.node_selection import NodeTerms
from scheduler_plugin.objects.pods import PodView
from scheduler_plugin.reclaiming.placement.offers import DeviceCriteria, class_criteria, criteria_of

MOST_CHOICES = 16
"""The largest number of combinations of a pod's alternatives to look at."""

MOST_DEVICES = 32
"""The largest number of devices of one pod to look for."""


@dataclass(frozen=True, slots=True)
class DeviceRequest:
    """A request for devices of one kind.

    Attributes:
        claim: The name of the claim; "" for a request of the pod's own.
        alternative: The alternative; a request of the pod's own has the resource's name here.
        criteria: The criteria that each device has to meet.
        drivers: The drivers whose devices may match; () for all.
    """

    claim: str
    alternative: Alternative
    criteria: DeviceCriteria
    drivers: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class PodDemand:
    """The demand of a pod: it has to find a node with these devices.

    Attributes:
        choices: The requests of its claims, once for each combination of alternatives; one is
            enough. Empty where a DeviceClass does not exist: kube-scheduler tries no such pod.
        resources: Its extended resources. A device plugin of the node provides them, or a device
            of the DeviceClass, where there is one.
        beside: The pod on whose node it has to be; "" for none.
        selections: The nodes of its claims that are allocated already.
    """

    pod: PodView
    choices: tuple[tuple[DeviceRequest, ...], ...]
    resources: tuple[DeviceRequest, ...] = ()
    beside: PodUid = NO_POD
    selections: tuple[NodeTerms, ...] = ()

    @property
    def kind(self) -> object:
        """Equal for pods that the same devices and nodes serve."""
        claims = list(dict.fromkeys(request.claim for request in self.device_requests))
        asked = tuple(
            (request.alternative.count, request.criteria, _agrees_in(claims, request))
            for request in self.device_requests
        )
        return asked, self.resources, self.pod.needs, self.selections

    @property
    def device_requests(self) -> tuple[DeviceRequest, ...]:
        """All requests for devices, of all alternatives."""
        of_claims = (request for choice in self.choices for request in choice)
        by_class = (request for request in self.resources if request.alternative.device_class)
        return tuple(dict.fromkeys((*of_claims, *by_class)))


def _agrees_in(claims: list[str], request: DeviceRequest) -> int | None:
    """The index of the claim whose constraints the request shares; None without constraints."""
    return claims.index(request.claim) if request.criteria.constraints else None


def may_want_device(pod: PodView) -> bool:
    """Whether kube-scheduler tried a pod, and it waits with a claim or a request of its own."""
    device_requests = pod.claims or pod.requests
    return pod.unschedulable and pod.may_be_bound and not pod.gates and bool(device_requests)


def _open_claims(pod: PodView, world: WorldView) -> list[ClaimView]:
    return [claim for claim in world.facts.claims_of(pod) if not claim.is_allocated]


# The demand of each pod.


def demands_of(pods: Sequence[PodView], world: WorldView) -> tuple[PodDemand, ...] | str:
    """The demand of each pod; or why it is not modelled, for the end of a sentence.

    A claim that several pods share has its devices once, and all these pods are on one node.
    """
    found: list[PodDemand] = []
    shared: dict[str, PodUid] = {}
    for pod in pods:
        demand = _demand(world.facts.without_lost_claim(pod), shared, world)
        if isinstance(demand, str):
            return demand
        found.append(demand)
        for claim in pod.claim_names:
            shared.setdefault(claim, demand.beside or pod.uid)
    return tuple(found)


def _demand(pod: PodView, shared: dict[str, PodUid], world: WorldView) -> PodDemand | str:
    if pod.extended_claim:
        return f"{pod} has a claim for its extended resources: that is not looked at."
    claims = _open_claims(pod, world)
    beside = dict.fromkeys(shared[claim.name] for claim in claims if claim.name in shared)
    if len(beside) > 1:
        return f"{pod} shares claims with several pods that wait: that is not looked at."
    own = [claim for claim in claims if claim.name not in shared]
    if why_not_modelled := _why_not_modelled(own):
        return why_not_modelled
    requests = [(claim, claim_request) for claim in own for claim_request in claim.requests]
    device_requests = [
        [_device_request(claim, a, world) for a in claim_request.alternatives]
        for claim, claim_request in requests
    ]
    named = (a.device_class for _, claim_request in requests for a in claim_request.alternatives)
    resources = tuple(_resource(name, count, world) for name, count in pod.requests if count)
    return PodDemand(
        pod=pod,
        choices=tuple(product(*device_requests)) if _exist(named, world) else (),
        resources=resources,
        beside=next(iter(beside), NO_POD),
        selections=tuple(c.nodes for c in world.facts.claims_of(pod) if c.nodes is not None),
    )


def _exist(classes: Iterable[ClassName], world: WorldView) -> bool:
    return all(world.facts.catalog.class_named(name) is not None for name in classes)


def _device_request(claim: ClaimView, alternative: Alternative, world: WorldView) -> DeviceRequest:
    selectors, drivers = _of_class(alternative.device_class, world)
    return DeviceRequest(
        claim.name, alternative, criteria_of(claim, alternative, selectors), drivers
    )


def _of_class(name: ClassName, world: WorldView) -> tuple[tuple[str | None, ...], tuple[str, ...]]:
    """A DeviceClass's selectors and drivers; an unknown class may select any device."""
    found = world.facts.catalog.class_named(name)
    return ((None,), ()) if found is None else (found.selectors, found.drivers)


def _resource(name: str, count: int, world: WorldView) -> DeviceRequest:
    stands_for = world.facts.catalog.resource_class(name) or ClassName("")
    selectors, drivers = _of_class(stands_for, world)
    alternative = Alternative(name=name, device_class=stands_for, count=count)
    return DeviceRequest("", alternative, class_criteria(selectors), drivers)


def _why_not_modelled(claims: Sequence[ClaimView]) -> str:
    requests = [(claim, claim_request) for claim in claims for claim_request in claim.requests]
    for claim, claim_request in requests:
        for alternative in claim_request.alternatives:
            if alternative.admin_access:
                return f"{claim} asks for administrative access: that is not looked at."
    most = sum(
        max(a.count or 0 for a in claim_request.alternatives) for _, claim_request in requests
    )
    choices = prod(len(claim_request.alternatives) for _, claim_request in requests)
    if most > MOST_DEVICES or choices > MOST_CHOICES:
        return (
            f"more than {MOST_DEVICES} devices or {MOST_CHOICES} combinations of alternatives"
            " are not looked at."
        )
    return ""


def most_devices(pod: PodView, world: WorldView) -> int | None:
    """The largest number of devices that a pod requests; None where that is not known."""
    demands = demands_of([pod], world)
    if isinstance(demands, str):
        return None
    device_requests = [[*choice, *demands[0].resources] for choice in demands[0].choices]
    counts = [[request.alternative.count for request in choice] for choice in device_requests]
    if any(count is None for choice in counts for count in choice):
        return None
    return max((sum(n for n in choice if n is not None) for choice in counts), default=0)


def nodes_of_resources(demand: PodDemand, world: WorldView) -> Iterator[str]:
    """Nodes whose device plugin may have some of the pod's extended resources."""
    names = {request.alternative.name for request in demand.resources}
    for instance in world.facts.catalog.instances() if names else ():
        has = f"{LEGACY_PREFIX}{instance.configuration}", f"{LEGACY_PREFIX}{instance.name}"
        if not names.isdisjoint(has):
            yield from instance.nodes
