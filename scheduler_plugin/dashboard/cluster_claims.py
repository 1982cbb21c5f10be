"""Claims that pods name and no watch has brought: reads whether they exist.

A list of all claims says so at once; for pods that a watch brings later it is not known.
"""

from __future__ import annotations

from collections.abc import Iterable

from scheduler_plugin.accounting.world_changes import PodChanged, WorldChange
from scheduler_plugin.accounting.world_views import WorldView
from scheduler_plugin.cluster.apiserver_lookups import ClaimKey, ClaimLookups
from scheduler_plugin.objects.pods import PodView


class NamedClaims:
    """Queues reads of claims that pods name."""

    def __init__(self, world: WorldView, lookups: ClaimLookups) -> None:
        self._world, self._lookups = world, lookups

    def begin(self) -> None:
        """Look at all pods; call it once the world is in sync."""
        for pod in self._world.facts.pods():
            self._lookups.add(self._unknown(pod))

    def changed(self, change: WorldChange) -> None:
        """Look at a changed pod; it is a listener of the world."""
        pod = self._world.facts.pod(change.uid) if isinstance(change, PodChanged) else None
        if pod is not None:
            self._lookups.add(self._unknown(pod))

    def _unknown(self, pod: PodView) -> Iterable[ClaimKey]:
        facts, keys = self._world.facts, ((pod.namespace, name) for name in pod.claim_names)
        return [k for k in keys if facts.claim_named(*k) is None and not facts.is_gone_claim(k)]
