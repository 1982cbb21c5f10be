"""Whether there are as many free devices as pods need that go together: a necessary condition.

Where they are is not looked at: kube-scheduler finds out. But of pods that go together none is let
go as long as there are too few of them anywhere, since those that went would hold theirs in vain.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace

from scheduler_plugin.accounting.world_views import WorldView
from scheduler_plugin.objects.pods import PodView
from scheduler_plugin.reclaiming.places.device_use import DeviceUse
from scheduler_plugin.reclaiming.places.offers import Offer
from scheduler_plugin.reclaiming.places.seekers import Ask, seekers_of
from scheduler_plugin.reclaiming.places.stock import Stock


def too_few_for(pods: Sequence[PodView], world: WorldView, stock: Stock) -> str:
    """Why pods of one PodGroup do not go together; "" where there may be enough for them."""
    for ask, needed in _asked(pods, world).items():
        free = _count(_free(ask, pods, world, stock), needed)
        if free < needed:
            return (
                f"PodGroup {pods[0].namespace}/{pods[0].group} goes as a whole: {len(pods)} of its"
                f" pods ask for {needed} of {ask.alternative.device_class}, and {free} that would"
                " do are free."
            )
    return ""


def _asked(pods: Sequence[PodView], world: WorldView) -> Counter[Ask]:
    """How many devices they ask for in all, of each kind that is counted.

    Nothing of who has a choice, and of who wants all devices of a node, however many these are.
    """
    found: Counter[Ask] = Counter()
    seekers = seekers_of(pods, world)
    for seeker in seekers if not isinstance(seekers, str) else ():
        for ask in seeker.choices[0] if len(seeker.choices) == 1 else ():
            if ask.alternative.count:
                found[_of_any_claim(ask)] += ask.alternative.count
    return found


def _of_any_claim(ask: Ask) -> Ask:
    """Equal for what asks for the same, in whatever claim and under whatever name."""
    alternative = replace(ask.alternative, name="", count=1)
    return replace(
        ask, claim="", alternative=alternative, request=replace(ask.request, constraints=())
    )


def _count(free: Iterator[int], needed: int) -> int:
    """How many there are; no more are looked at than are needed."""
    total = 0
    for each in free:
        total += each
        if total >= needed:
            break
    return total


def _free(ask: Ask, pods: Sequence[PodView], world: WorldView, stock: Stock) -> Iterator[int]:
    """Of each device that would do, how many requests it has room for as it is."""
    uids = {pod.uid for pod in pods}
    holds = (h for h in world.assumptions.holds.of_devices() if h.pod not in uids)
    use = DeviceUse(world, holds, ())
    for device in stock.devices.perhaps_free(world.facts.devices_in_use()):
        offer = stock.devices.offer(device)
        if offer is not None and _is_of(ask, offer) and stock.answers.accepts(ask.request, offer):
            yield _room(offer, ask.request.slots, use)


def _is_of(ask: Ask, offer: Offer) -> bool:
    return not ask.drivers or offer.device.driver in ask.drivers


def _room(offer: Offer, slots: int, use: DeviceUse) -> int:
    if offer.slots is None:
        return int(use.has_room(offer, slots, None))
    most = range(0, offer.slots, slots)
    return sum(1 for taken in most if use.has_room(offer, slots, None, taken))
