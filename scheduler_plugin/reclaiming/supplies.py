"""What a cycle asks of nodes and devices, and the answers of who does not look at them."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Protocol

from scheduler_plugin.objects.amounts import ResourceKey
from scheduler_plugin.objects.claims import DeviceId
from scheduler_plugin.objects.names import PodUid
from scheduler_plugin.objects.steps import Steps
from scheduler_plugin.reclaiming.heads import Head
from scheduler_plugin.reclaiming.places.places import Place
from scheduler_plugin.reclaiming.victims.victims import Victim


class Supply(Protocol):
    """Where devices are, and who has them."""

    def look(self, head: Head, gone: Collection[PodUid]) -> Steps[None]:
        """Look at many nodes, which takes its time: whatever is asked of them next does not."""

    def lacks(self, head: Head, gone: Collection[PodUid]) -> tuple[ResourceKey, ...]:
        """Of what a head finds too little once these pods are gone."""

    def used(
        self, head: Head, gone: Collection[PodUid]
    ) -> tuple[frozenset[DeviceId], frozenset[str]]:
        """The devices that it finds then, and the nodes where these and itself would be."""

    def helps(self, head: Head, victim: Victim) -> bool:
        """Whether what it holds is anything that the head could have."""

    def keep(self, head: Head, gone: Collection[PodUid]) -> Sequence[Place]:
        """What the head finds then is its: nobody after it finds it. Returns the places."""

    def doubt(self, head: Head, gone: Collection[PodUid]) -> str:
        """Why nothing is taken for it, for the end of a sentence; "" where something may be."""

    def why_not(self, head: Head) -> str:
        """Why nodes with devices that would do are none for it, for the end of a sentence."""


class LimitsAlone:
    """Devices are not looked at: limits are all that is."""

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

    def keep(self, head: Head, gone: Collection[PodUid]) -> Sequence[Place]:
        return ()

    def doubt(self, head: Head, gone: Collection[PodUid]) -> str:
        return ""

    def why_not(self, head: Head) -> str:
        return ""
