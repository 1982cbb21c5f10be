"""Whether there are enough free devices for a gang: a necessary condition for its admission.

The nodes of the devices are not looked at; kube-scheduler does that. While there are too few in
the whole cluster, no pod of the gang is admitted: the first pods would hold theirs in vain.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import groupby

from scheduler_plugin.accounting.world_views import WorldView
from scheduler_plugin.objects.pods import PodView
from scheduler_plugin.reclaiming.placement.accepted_devices import AcceptedDevices
from scheduler_plugin.reclaiming.placement.demands import DeviceRequest, PodDemand, demands_of
from scheduler_plugin.reclaiming.placement.device_room import free_counters, most_together
from scheduler_plugin.reclaiming.placement.device_use import DeviceUse
from scheduler_plugin.reclaiming.placement.offered_devices import Pool
from scheduler_plugin.reclaiming.placement.offers import Offer

MOST_BY_COUNTERS = 1_000
"""How many devices of pools with counters one call looks at; of the others each may be used."""


def too_few_for(pods: Sequence[PodView], world: WorldView, accepted: AcceptedDevices) -> str:
    """Why there are too few devices for the pods of a PodGroup; "" where they may be enough."""
    demands = demands_of(pods, world)
    needs = _asked(demands if not isinstance(demands, str) else ())
    before = _asked(_on_their_way(pods, world)) if needs else needs
    for request, needed in needs.items():
        most = needed + before[request]
        free = _count(_free(accepted, request, pods, world), most) - before[request]
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
    accepted: AcceptedDevices, request: DeviceRequest, pods: Sequence[PodView], world: WorldView
) -> Iterator[float]:
    """For each matching device, the number of requests that it has room for now.

    Infinite for the devices that were not looked at yet. Of partitions that share counters only as
    many are listed as may be in use together.
    """
    uids = {pod.uid for pod in pods}
    holds = (h for h in world.assumptions.holds.of_devices() if h.pod not in uids)
    use = DeviceUse(world, holds, ())
    used = world.facts.devices_in_use()

    def room(offer: Offer) -> float:
        is_open = offer.published.is_shared or offer.device not in used
        return use.room(offer, request.criteria, None) if is_open else 0

    left = MOST_BY_COUNTERS
    for pool, offers in groupby(accepted.of(request), accepted.pool_of):
        if pool is None:
            yield math.inf
            return
        if not pool.counters or left <= 0:
            yield from map(room, filter(None, offers))
            continue
        left -= len(pool.devices)
        for together, most in _partitions(pool, filter(None, offers), use):
            rooms = map(room, together)
            yield from rooms if most is None else sorted(rooms, reverse=True)[:most]


def _partitions(
    pool: Pool, offers: Iterable[Offer], use: DeviceUse
) -> Iterator[tuple[Iterable[Offer], int | None]]:
    """Devices of a pool, and how many can be in use together at most; None for all of them.

    A device in use has its counters already. Devices of different counter sets are looked at apart.
    """
    used = {each.device for each in pool.devices.values() if use.is_used(each.device, None)}
    apart, sharing = list[Offer](), dict[frozenset[str], list[Offer]]()
    for offer in offers:
        sets = frozenset(each.counter_set for each in offer.published.counters)
        is_apart = not sets or offer.device in used
        (apart if is_apart else sharing.setdefault(sets, [])).append(offer)
    yield apart, None
    free = free_counters(pool, lambda device: device.device in used)
    for found in sharing.values():
        if most := most_together([offer.published for offer in found], free):
            yield found, most
