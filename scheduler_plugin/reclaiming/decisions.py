"""What is decided about a pod that waits for what its queue is guaranteed: who goes, if anybody."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import chain
from typing import TypeAlias

from scheduler_plugin.accounting.holds import Hold
from scheduler_plugin.objects.pods import PodView
from scheduler_plugin.reclaiming.places.places import Place
from scheduler_plugin.reclaiming.victims.victims import Victim
from scheduler_plugin.reclaiming.wants import Nobody


@dataclass(frozen=True, slots=True)
class Take:
    """These are to go, all of them, and what they leave is the pod's.

    Attributes:
        pod: Who waits.
        holds: What is to be held for it, and for those that go with it.
        sentence: Who, for whom, and why these.
        places: Where each that waits would be then, where that was looked at.
        is_device: Whether it lacks a device, and not only room below a limit.
    """

    pod: PodView
    holds: tuple[Hold, ...]
    victims: tuple[Victim, ...]
    sentence: str
    places: tuple[Place, ...] = ()
    is_device: bool = False

    @property
    def hold(self) -> Hold:
        """The first of them: all are for one queue, and all for room or all for devices."""
        return self.holds[0]

    @property
    def pods(self) -> tuple[PodView, ...]:
        """Who is to be evicted, each once; those on their way out are left out."""
        users = chain.from_iterable(victim.users for victim in self.victims)
        return tuple({pod.uid: pod for pod in users if not pod.deleting}.values())


@dataclass(frozen=True, slots=True)
class OnItsWay:
    """What the pod lacks is free, or about to be.

    Attributes:
        holds: What it and those that go with it would have, and where; none where a limit keeps
            them from it until others have ended.
        is_guaranteed: Whether that is within its queue's quota: it goes before those that borrow.
    """

    holds: tuple[Hold, ...] = ()
    is_guaranteed: bool = False


Decision: TypeAlias = Take | OnItsWay | Nobody
