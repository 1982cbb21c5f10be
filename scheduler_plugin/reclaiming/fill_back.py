"""Put back targets that turned out not to be needed.

Many targets may have been taken before one node had what a head needs. Of these only the targets
remain that release what the head finds there, or room that is lacking. Then each remaining target
is tried without, the last one first.
"""

from __future__ import annotations

from collections.abc import Sequence

from scheduler_plugin.objects.steps import Steps
from scheduler_plugin.reclaiming.placements import Placements
from scheduler_plugin.reclaiming.simulated_evictions import SimulatedEvictions
from scheduler_plugin.reclaiming.target_searches import TargetSearch
from scheduler_plugin.reclaiming.victims.victims import Victim

FEW = 16
"""The number of targets between two pauses."""


def fill_back(
    search: TargetSearch, evictions: SimulatedEvictions, placements: Placements
) -> Steps[None]:
    """Put back the targets that are not needed; the last one always is."""
    if len(search.taken) > 1:
        useful = yield from _useful(search, evictions, placements)
        yield from _keep_alone(search, useful, evictions)
    for victim in reversed(search.victims[:-1]):
        if evictions.may_be_put_back(search, victim):
            others = [other for other in search.victims if other is not victim]
            yield from _keep_alone(search, others, evictions)


def _useful(
    search: TargetSearch, evictions: SimulatedEvictions, placements: Placements
) -> Steps[list[Victim]]:
    """The targets that release what the head would find now, and those needed at limits."""
    devices, nodes = placements.used(search.head, evictions.gone)
    before = evictions.put_back(search)
    for victim in before:
        is_there = any(pod.node in nodes for pod in victim.users)
        if is_there or not devices.isdisjoint(victim.devices):
            evictions.take(search, victim)
    yield
    for victim in before:
        if victim not in search.victims and evictions.gives_room(search, victim):
            evictions.take(search, victim)
            yield
    useful = evictions.put_back(search)
    yield from _take_all(search, before, evictions)
    return [victim for victim in before if victim in useful]


def _keep_alone(
    search: TargetSearch, victims: Sequence[Victim], evictions: SimulatedEvictions
) -> Steps[None]:
    """Keep only these targets, unless another one is needed."""
    before = evictions.put_back(search)
    yield from _take_all(search, victims, evictions)
    if not evictions.is_enough(search):
        evictions.put_back(search)
        yield from _take_all(search, before, evictions)


def _take_all(
    search: TargetSearch, victims: Sequence[Victim], evictions: SimulatedEvictions
) -> Steps[None]:
    for number, victim in enumerate(victims, start=1):
        evictions.take(search, victim)
        if not number % FEW:
            yield
