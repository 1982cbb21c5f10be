"""What is written for pods that something is taken back for: their condition."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import KW_ONLY, dataclass

from binder.apiserver_evictions import Evictor
from kube.api import PODS, ApiClient, JsonObject, Preconditions, WriteOptions
from scheduler_plugin.api import RECLAIMING_CONDITION, STALE_CONDITION, Fence, PodView, check_fence


@dataclass(frozen=True, slots=True)
class ReclaimWrites:
    """Conditions of waiting pods, and evictions.

    Attributes:
        note_pod: Told each pod that the API server answers with.
    """

    client: ApiClient
    evictor: Evictor
    fence: Fence
    _: KW_ONLY
    note_pod: Callable[[JsonObject], None]
    write_seconds: float

    async def tell(self, pod: PodView, *, holds: bool, reason: str, message: str) -> None:
        """Write the condition of a waiting pod. Raises ApiError or FencedError."""
        fields = {"status": str(holds), "reason": reason, "message": message}
        await self._write(pod, {"type": RECLAIMING_CONDITION, **fields})

    async def tell_stale(self, pod: PodView, since: str | None, message: str) -> None:
        """Write since when its PodGroup has had too few pods; None for no more. As `tell`."""
        fields = {"status": "False", "reason": "Complete", "message": message}
        if since is not None:
            fields |= {"status": "True", "reason": "TooFewPods", "lastTransitionTime": since}
        await self._write(pod, {"type": STALE_CONDITION, **fields})

    async def _write(self, pod: PodView, condition: JsonObject) -> None:
        check_fence(self.fence, self.write_seconds)
        answer = await self.client.strategic_merge_patch(
            PODS.at(pod.name, pod.namespace, subresource="status"),
            {"status": {"conditions": [condition]}},
            preconditions=Preconditions(pod.uid),
            options=WriteOptions(timeout_seconds=self.write_seconds),
        )
        self.note_pod(answer)
