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
from scheduler_plugin.reclaiming.places.accepted_devices import AcceptedDevices
from scheduler_plugin.reclaiming.places.device_use import DeviceUse
from scheduler_plugin.reclaiming.places.offers import Offer
from scheduler_plugin.reclaiming.places.seekers import Ask, Seeker, seekers_of


def too_few_for(pods: Sequence[PodView], world: WorldView, accepted: AcceptedDevices) -> str:
    """Why there are too few devices for the pods of a PodGroup; "" where they may be enough."""
    seekers = seekers_of(pods, world)
    needs = _asked(seekers if not isinstance(seekers, str) else ())
    before = _asked(_on_their_way(pods, world)) if needs else needs
    for ask, needed in needs.items():
        most = needed + before[ask]
        free = _count(_free(accepted.of(ask), ask, pods, world), most) - before[ask]
        if free < needed:
            group = f"PodGroup {pods[0].namespace}/{pods[0].group}"
            asks = f"{len(pods)} of its pods request {needed} of {ask.alternative.device_class}"
            there = f"{max(0, free):.0f} matching devices are free"
            return f"{group} goes as a whole: {asks}, and {there}."
    return ""


def _on_their_way(pods: Sequence[PodView], world: WorldView) -> Iterator[Seeker]:
    """The demands of admitted pods that are not bound; pods with holds are counted as held."""
    passed_by = {*(pod.uid for pod in pods), *(hold.pod for hold in world.assumptions.holds)}
    claims: set[tuple[str, str]] = set()
    for uid in world.assumptions.admitted():
        pod = world.facts.pod(uid)
        if pod is None or uid in passed_by or not pod.may_be_bound:
            continue
        named = {(pod.namespace, name) for name in pod.claim_names}
        seekers = seekers_of([pod], world)
        if claims.isdisjoint(named) and not isinstance(seekers, str):
            yield from seekers
        claims |= named


def _asked(seekers: Iterable[Seeker]) -> Counter[Ask]:
    """The number of requested devices, by request.

    Pods with alternatives are not counted, nor requests for all devices of a node.
    """
    found: Counter[Ask] = Counter()
    for seeker in seekers:
        for ask in seeker.choices[0] if len(seeker.choices) == 1 else ():
            if ask.alternative.count:
                found[_of_any_claim(ask)] += ask.alternative.count
    return found


def _of_any_claim(ask: Ask) -> Ask:
    """The request without the names of its claim and of the request itself."""
    alternative = replace(ask.alternative, name="", count=1)
    return replace(
        ask, claim="", alternative=alternative, request=replace(ask.request, constraints=())
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
    offers: Iterable[Offer | None], ask: Ask, pods: Sequence[PodView], world: WorldView
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
        elif offer.slots is not None or offer.device not in used:
            yield _room(offer, ask.request.slots, use)


def _room(offer: Offer, slots: int, use: DeviceUse) -> int:
    if offer.slots is None:
        return int(use.has_room(offer, slots, None))
    most = range(0, offer.slots, slots)
    return sum(1 for taken in most if use.has_room(offer, slots, None, taken))
