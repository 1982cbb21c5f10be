"""Writes of preemption: the conditions of waiting pods."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass
from datetime import datetime

from binder.evictions.apiserver_evictions import Evictor
from kube.calls.api import ApiClient, ApiError, Preconditions, WriteOptions
from kube.kinds import PODS
from kube.objects import JsonObject
from scheduler_plugin.objects.api import Fence, FencedError, PodView, check_fence, missed_text
from scheduler_plugin.objects.names import (
    MISSED_CONDITION,
    RECLAIMING_CONDITION,
    SELECTORS_CONDITION,
    STALE_CONDITION,
)

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class ReclaimWrites:
    """Writes conditions of waiting pods, and holds the evictor.

    Attributes:
        note_pod: Called with each pod in an answer of the API server.
        write_seconds: The time limit of one write.
    """

    client: ApiClient
    evictor: Evictor
    fence: Fence
    _: KW_ONLY
    note_pod: Callable[[JsonObject], None]
    write_seconds: float

    async def write_reclaiming(
        self, pod: PodView, *, holds: bool, reason: str, message: str
    ) -> None:
        """Write the condition `moorage.dev/Reclaiming`. Raises ApiError or FencedError."""
        fields = {"status": str(holds), "reason": reason, "message": message}
        await self._write(pod, {"type": RECLAIMING_CONDITION, **fields})

    async def write_missed(self, pod: PodView, nodes: Mapping[str, datetime]) -> None:
        """Write the missed nodes of a pod, each with its end. Raises as above."""
        fields = {"status": "True", "reason": "NotBound", "message": missed_text(nodes)}
        await self._write(pod, {"type": MISSED_CONDITION, **fields})

    async def write_stale(self, pod: PodView, since: str | None, message: str) -> None:
        """Write since when a PodGroup has too few pods; None for complete. Raises as above."""
        fields = {"status": "False", "reason": "Complete", "message": message}
        if since is not None:
            fields |= {"status": "True", "reason": "TooFewPods", "lastTransitionTime": since}
        await self._write(pod, {"type": STALE_CONDITION, **fields})

    async def write_slow(self, pod: PodView, digests: Sequence[str]) -> None:
        """Write which selectors of a waiting pod take too long, for the next leader.

        A failed write is logged; the next leader then finds it out anew.
        """
        message = (
            "Evaluating the CEL selectors of its claims takes too long. They count as satisfied"
            f" where devices are taken back for this pod. Their digests: {', '.join(digests)}."
        )
        fields = {"status": "True", "reason": "NotEvaluated", "message": message}
        try:
            await self._write(pod, {"type": SELECTORS_CONDITION, **fields})
        except (ApiError, FencedError) as error:
            logger.warning("condition of slow selectors not written pod=%s: %s", pod, error)

    async def _write(self, pod: PodView, condition: JsonObject) -> None:
        check_fence(self.fence, self.write_seconds)
        answer = await self.client.strategic_merge_patch(
            PODS.at(pod.name, pod.namespace, subresource="status"),
            {"status": {"conditions": [condition]}},
            preconditions=Preconditions(pod.uid),
            options=WriteOptions(timeout_seconds=self.write_seconds),
        )
        self.note_pod(answer)
