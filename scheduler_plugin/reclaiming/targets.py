"""The decision about a pod that waits for its queue's guaranteed quota: targets, or none."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import chain
from typing import TypeAlias

from scheduler_plugin.accounting.holds import Hold
from scheduler_plugin.objects.pods import PodView
from scheduler_plugin.reclaiming.expected_charges import NoCandidates
from scheduler_plugin.reclaiming.placement.node_fit import Placement
from scheduler_plugin.reclaiming.victims.victims import Victim


@dataclass(frozen=True, slots=True)
class Targets:
    """The targets to evict for a pod, all or none; what they release is held for the pod.

    Attributes:
        pod: The preemptor: the pod that waits.
        holds: What is to be held for the pod and for its gang.
        victims: The targets.
        sentence: The targets, the preemptor and the reason, for people.
        places: The placement of each pod of the gang; empty where it was not computed.
        is_device: Whether the pod lacks a device, and not only room below a limit.
    """

    pod: PodView
    holds: tuple[Hold, ...]
    victims: tuple[Victim, ...]
    sentence: str
    places: tuple[Placement, ...] = ()
    is_device: bool = False

    @property
    def hold(self) -> Hold:
        """The first hold: all are of one queue, and either all for room or all for devices."""
        return self.holds[0]

    @property
    def pods(self) -> tuple[PodView, ...]:
        """The pods to evict, each once, without those that are terminating."""
        users = chain.from_iterable(victim.users for victim in self.victims)
        return tuple({pod.uid: pod for pod in users if not pod.deleting}.values())


@dataclass(frozen=True, slots=True)
class InProgress:
    """Preemption in progress: what the pod lacks is free, or terminating pods are releasing it.

    Attributes:
        holds: What the pod and its gang would get, and where; empty where a limit has no room
            until other pods have ended.
        is_guaranteed: Whether that is within its queue's quota: it goes before borrowing pods.
    """

    holds: tuple[Hold, ...] = ()
    is_guaranteed: bool = False


Decision: TypeAlias = Targets | InProgress | NoCandidates
