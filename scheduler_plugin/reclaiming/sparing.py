"""Whoever was taken and turned out not to be needed stays.

Many may have been taken until one node had what a head needs: of these only those stay away who
leave what it finds there, or room that is lacking; of them each is tried, the last one first.
"""

from __future__ import annotations

from collections.abc import Sequence

from scheduler_plugin.objects.steps import Steps
from scheduler_plugin.reclaiming.errands import Errand
from scheduler_plugin.reclaiming.supplies import Supply
from scheduler_plugin.reclaiming.takings import Takings
from scheduler_plugin.reclaiming.victims.victims import Victim

FEW = 16
"""After how many that go there is a pause."""


def spare(errand: Errand, takings: Takings, supply: Supply) -> Steps[None]:
    """Give back who is not needed; without the very last it was short."""
    if len(errand.taken) > 1:
        useful = yield from _useful(errand, takings, supply)
        yield from _keep_alone(errand, useful, takings)
    for victim in reversed(errand.victims[:-1]):
        if takings.has_to_spare(errand, victim):
            others = [other for other in errand.victims if other is not victim]
            yield from _keep_alone(errand, others, takings)


def _useful(errand: Errand, takings: Takings, supply: Supply) -> Steps[list[Victim]]:
    """Who leaves what the head would find now, and who is needed at limits beside these."""
    devices, nodes = supply.used(errand.head, takings.gone)
    before = takings.give_back(errand)
    for victim in before:
        is_there = any(pod.node in nodes for pod in victim.users)
        if is_there or not devices.isdisjoint(victim.devices):
            takings.take(errand, victim)
    yield
    for victim in before:
        if victim not in errand.victims and takings.gives_room(errand, victim):
            takings.take(errand, victim)
            yield
    useful = takings.give_back(errand)
    yield from _take_all(errand, before, takings)
    return [victim for victim in before if victim in useful]


def _keep_alone(errand: Errand, victims: Sequence[Victim], takings: Takings) -> Steps[None]:
    """All others stay, unless one of them is needed."""
    before = takings.give_back(errand)
    yield from _take_all(errand, victims, takings)
    if not takings.is_enough(errand):
        takings.give_back(errand)
        yield from _take_all(errand, before, takings)


def _take_all(errand: Errand, victims: Sequence[Victim], takings: Takings) -> Steps[None]:
    for number, victim in enumerate(victims, start=1):
        takings.take(errand, victim)
        if not number % FEW:
            yield
