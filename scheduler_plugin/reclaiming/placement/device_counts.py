"""Whether there are enough free devices for a gang: a necessary condition for its admission.

The nodes of the devices are not looked at; kube-scheduler does that. While there are too few in
the whole cluster, no pod of the gang is admitted: the first pods would hold theirs in vain.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

from scheduler_plugin.accounting.world_views import WorldView
from scheduler_plugin.objects.pods import PodView
from scheduler_plugin.reclaiming.placement.accepted_devices import AcceptedDevices
from scheduler_plugin.reclaiming.placement.demands import DeviceRequest, PodDemand, demands_of
from scheduler_plugin.reclaiming.placement.device_use import DeviceUse
from scheduler_plugin.reclaiming.placement.offers import Offer


def too_few_for(pods: Sequence[PodView], world: WorldView, accepted: AcceptedDevices) -> str:
    """Why there are too few devices for the pods of a PodGroup; "" where they may be enough."""
    demands = demands_of(pods, world)
    needs = _asked(demands if not isinstance(demands, str) else ())
    before = _asked(_on_their_way(pods, world)) if needs else needs
    for request, needed in needs.items():
        most = needed + before[request]
        free = _count(_free(accepted.of(request), request, pods, world), most) - before[request]
        if free < needed:
            group = f"PodGroup {pods[0].namespace}/{pods[0].group}"
            asks = f"{len(pods)} of its pods request {needed} of {request.alternative.device_class}"
            there = f"{max(0, free):.0f} matching devices are free"
            return f"{group} goes as a whole: {asks}, and {there}."
    return ""


def _on_their_way(pods: Sequence[PodView], world: WorldView) -> Iterator[PodDemand]:
    """The demands of admitted pods that are not bound; pods with holds are counted as held."""
    passed_by = {*(pod.uid for pod in pods), *(hold.pod for hold in world.assumptions.holds)}
    claims: set[tuple[str, str]] = set()
    for uid in world.assumptions.admitted():
        pod = world.facts.pod(uid)
        if pod is None or uid in passed_by or not pod.may_be_bound:
            continue
        named = {(pod.namespace, name) for name in pod.claim_names}
        demands = demands_of([pod], world)
        if claims.isdisjoint(named) and not isinstance(demands, str):
            yield from demands
        claims |= named


def _asked(demands: Iterable[PodDemand]) -> Counter[DeviceRequest]:
    """The number of requested devices, by request.

    Pods with alternatives are not counted, nor requests for all devices of a node.
    """
    found: Counter[DeviceRequest] = Counter()
    for demand in demands:
        for request in demand.choices[0] if len(demand.choices) == 1 else ():
            if request.alternative.count:
                found[_of_any_claim(request)] += request.alternative.count
    return found


def _of_any_claim(request: DeviceRequest) -> DeviceRequest:
    """The request without the names of its claim and of the request itself."""
    alternative = replace(request.alternative, name="", count=1)
    return replace(
        request,
        claim="",
        alternative=alternative,
        criteria=replace(request.criteria, constraints=()),
    )


def _count(free: Iterator[float], needed: int) -> float:
    """The sum of `free`, stopped at `needed`."""
    total = 0.0
    for each in free:
        total += each
        if total >= needed:
            break
    return total


def _free(
    offers: Iterable[Offer | None],
    request: DeviceRequest,
    pods: Sequence[PodView],
    world: WorldView,
) -> Iterator[float]:
    """For each matching device, the number of requests that it has room for now.

    Infinite for the devices that were not looked at yet.
    """
    uids = {pod.uid for pod in pods}
    holds = (h for h in world.assumptions.holds.of_devices() if h.pod not in uids)
    use = DeviceUse(world, holds, ())
    used = world.facts.devices_in_use()
    for offer in offers:
        if offer is None:
            yield math.inf
        elif offer.published.is_shared or offer.device not in used:
            yield use.room(offer, request.criteria, None)
