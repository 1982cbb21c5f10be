"""The interface through which a cycle sees nodes and devices; one version looks at limits only."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Protocol

from scheduler_plugin.objects.amounts import ResourceKey
from scheduler_plugin.objects.claims import DeviceId
from scheduler_plugin.objects.names import PodUid
from scheduler_plugin.objects.steps import Steps
from scheduler_plugin.reclaiming.heads import Head
from scheduler_plugin.reclaiming.placement.node_fit import Placement
from scheduler_plugin.reclaiming.victims.victims import Victim


class Placements(Protocol):
    """Finds nodes and devices for heads, with some pods gone."""

    def look(self, head: Head, gone: Collection[PodUid]) -> Steps[None]:
        """Look at the nodes for a head in steps, so that the other methods answer fast."""

    def lacks(self, head: Head, gone: Collection[PodUid]) -> tuple[ResourceKey, ...]:
        """The resources of which a head finds too little with these pods gone."""

    def used(
        self, head: Head, gone: Collection[PodUid]
    ) -> tuple[frozenset[DeviceId], frozenset[str]]:
        """The devices that the head finds, and the nodes of its placements."""

    def helps(self, head: Head, victim: Victim) -> bool:
        """Whether the head could use anything that the victim uses."""

    def keep(self, head: Head, gone: Collection[PodUid]) -> Sequence[Placement]:
        """Reserve for the head what it finds, so that later heads do not; returns the places."""

    def why_not_modelled(self, head: Head, gone: Collection[PodUid]) -> str:
        """Why nothing is evicted for it, for the end of a sentence; "" where it may be."""

    def why_not(self, head: Head) -> str:
        """Why nodes with matching devices do not fit it, for the end of a sentence."""


class LimitsOnly:
    """Ignores devices: only limits count."""

    def look(self, head: Head, gone: Collection[PodUid]) -> Steps[None]:
        return
        yield

    def lacks(self, head: Head, gone: Collection[PodUid]) -> tuple[ResourceKey, ...]:
        return ()

    def used(
        self, head: Head, gone: Collection[PodUid]
    ) -> tuple[frozenset[DeviceId], frozenset[str]]:
        return frozenset(), frozenset()

    def helps(self, head: Head, victim: Victim) -> bool:
        return False

    def keep(self, head: Head, gone: Collection[PodUid]) -> Sequence[Placement]:
        return ()

    def why_not_modelled(self, head: Head, gone: Collection[PodUid]) -> str:
        return ""

    def why_not(self, head: Head) -> str:
        return ""
