"""Put back targets that turned out not to be needed.

Many targets may have been taken before one node had what a head needs. Of these only the targets
remain that release what the head finds there, or room that is lacking. Then each remaining target
is tried without, the last one first.
"""

from __future__ import annotations

from collections.abc import Sequence

from scheduler_plugin.objects.steps import Steps
from scheduler_plugin.reclaiming.errands import Errand
from scheduler_plugin.reclaiming.supplies import Supply
from scheduler_plugin.reclaiming.takings import Takings
from scheduler_plugin.reclaiming.victims.victims import Victim

FEW = 16
"""The number of targets between two pauses."""


def spare(errand: Errand, takings: Takings, supply: Supply) -> Steps[None]:
    """Put back the targets that are not needed; the last one always is."""
    if len(errand.taken) > 1:
        useful = yield from _useful(errand, takings, supply)
        yield from _keep_alone(errand, useful, takings)
    for victim in reversed(errand.victims[:-1]):
        if takings.has_to_spare(errand, victim):
            others = [other for other in errand.victims if other is not victim]
            yield from _keep_alone(errand, others, takings)


def _useful(errand: Errand, takings: Takings, supply: Supply) -> Steps[list[Victim]]:
    """The targets that release what the head would find now, and those needed at limits."""
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
    """Keep only these targets, unless another one is needed."""
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
