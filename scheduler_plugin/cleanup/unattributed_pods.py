"""Pods that use devices without a verdict and are charged to no queue: each is reported once.

Static pods, and pods that another scheduler bound, were never judged. They are charged to the queue
that they name only if their namespace may use it.
"""

from __future__ import annotations

from scheduler_plugin.accounting.charges.entries import why_unattributed
from scheduler_plugin.accounting.world_views import WorldView
from scheduler_plugin.objects.names import PodUid
from scheduler_plugin.objects.pods import PodView


class UnattributedPods:
    """The unattributed pods, and which of them were reported."""

    def __init__(self, world: WorldView) -> None:
        self._facts = world.facts
        self._reported: set[PodUid] = set()

    def take_new(self) -> list[tuple[PodView, str]]:
        """The pods that were not returned before, each with the cause as a sentence."""
        uids = self._facts.pods_unjudged()
        self._reported &= set(uids)
        new = [pod for uid in uids if uid not in self._reported and (pod := self._facts.pod(uid))]
        found = [(pod, why) for pod in new if (why := why_unattributed(pod, self._facts))]
        self._reported.update(pod.uid for pod, _ in found)
        return found
