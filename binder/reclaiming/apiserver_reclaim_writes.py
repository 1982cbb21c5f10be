"""What is written for pods that something is taken back for: their condition."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import KW_ONLY, dataclass

from binder.apiserver_evictions import Evictor
from kube.api import PODS, ApiClient, JsonObject, Preconditions, WriteOptions
from scheduler_plugin.api import RECLAIMING_CONDITION, Fence, PodView, check_fence


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
        check_fence(self.fence, self.write_seconds)
        condition = {
            "type": RECLAIMING_CONDITION,
            "status": str(holds),
            "reason": reason,
            "message": message,
        }
        answer = await self.client.strategic_merge_patch(
            PODS.at(pod.name, pod.namespace, subresource="status"),
            {"status": {"conditions": [condition]}},
            preconditions=Preconditions(pod.uid),
            options=WriteOptions(timeout_seconds=self.write_seconds),
        )
        self.note_pod(answer)
