"""Writes to pods on the API server: removal of the gate, and the condition of waiting pods.

Each write concerns one pod of one UID, and may be repeated. It changes only Moorage's gate and
condition: other gates and conditions have other owners.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from kube.calls.api import (
    ApiClient,
    ConflictError,
    NotFoundError,
    PermanentError,
    Preconditions,
    ServerFaultError,
    WriteOptions,
)
from kube.kinds import PODS
from kube.objects import JsonObject
from kube.resources import ObjectPath
from scheduler_plugin.accounting.api import World
from scheduler_plugin.objects.api import Fence, PodView, check_fence
from scheduler_plugin.objects.names import ADMITTED_CONDITION, FIELD_MANAGER, QUOTA_GATE
from scheduler_plugin.reclaiming.api import Inventory
from scheduler_plugin.waiting.api import GateCondition, GateRemoval


class GateStaysError(Exception):
    """Raised where the API server refused to remove a gate that the pod still has.

    Its `__cause__` is the API server's error.
    """


class KnownCluster(Protocol):
    """The known pods and devices."""

    world: World
    inventory: Inventory

    def note_pod(self, obj: JsonObject) -> None:
        """Take the pod in the answer to a write of this process."""

    async def refresh_pod(self, namespace: str, name: str) -> PodView | None:
        """Read a pod, and enter it. None where it does not exist. Raises ApiError."""


@dataclass(frozen=True, slots=True)
class GateWrites:
    """Writes pods while this process has the Lease; each answer is entered at once.

    Each write may raise ApiError or FencedError.

    Attributes:
        write_seconds: The time limit of one write; the Lease has to last longer without a renewal.
    """

    client: ApiClient
    cluster: KnownCluster
    fence: Fence
    write_seconds: float = 2.0

    def why_not(self) -> str:
        """Why no write may begin now; "" where one may."""
        unfenced = self.fence.why_not(self.write_seconds)
        return unfenced or self.cluster.world.facts.tree.why_misread()

    async def remove_gate(self, removal: GateRemoval) -> None:
        """Remove the gate. Returns once the pod has no gate of Moorage's, or is gone.

        A pod is admitted when Moorage's gate is its only one, and gates cannot be added later. So
        the gate is the first one, or is gone.

        Raises:
            GateStaysError: The removal was refused or failed, and the pod has the gate.
            ApiError: It is not known whether the pod has the gate.
        """
        path = PODS.at(removal.name, removal.namespace)
        check_fence(self.fence, self.write_seconds)
        try:
            answer = await self.client.json_patch(path, _removal(removal), options=self._options())
        except NotFoundError:
            self.cluster.world.assumptions.forget(removal.uid)
        except (PermanentError, ConflictError, ServerFaultError) as error:
            await self._look(removal, error)
        else:
            self.cluster.note_pod(answer)

    async def _look(self, removal: GateRemoval, why: Exception) -> None:
        """Read the pod: an earlier attempt may have removed the gate without an answer."""
        pod = await self.cluster.refresh_pod(removal.namespace, removal.name)
        if pod is None or pod.uid != removal.uid:
            self.cluster.world.assumptions.forget(removal.uid)
        elif QUOTA_GATE in pod.gates:
            raise GateStaysError(str(why)) from why

    async def write_condition(self, condition: GateCondition) -> None:
        """Write why a pod waits, or that a refused pod fits."""
        written_condition = {
            "type": ADMITTED_CONDITION,
            "status": "True" if condition.fits else "False",
            "reason": condition.reason,
            "message": condition.message,
            "lastTransitionTime": condition.since or None,
        }
        path = PODS.at(condition.name, condition.namespace, subresource="status")
        await self._patch_condition(path, condition.uid, written_condition)

    async def remove_condition(self, pod: PodView) -> None:
        """Remove the condition of a pod that does not wait any more."""
        path = PODS.at(pod.name, pod.namespace, subresource="status")
        gone = {"$patch": "delete", "type": ADMITTED_CONDITION}
        await self._patch_condition(path, pod.uid, gone)

    async def _patch_condition(self, path: ObjectPath, uid: str, condition: JsonObject) -> None:
        check_fence(self.fence, self.write_seconds)
        answer = await self.client.strategic_merge_patch(
            path,
            {"status": {"conditions": [condition]}},
            preconditions=Preconditions(uid),
            options=self._options(),
        )
        self.cluster.note_pod(answer)

    def _options(self) -> WriteOptions:
        return WriteOptions(field_manager=FIELD_MANAGER, timeout_seconds=self.write_seconds)


def _removal(removal: GateRemoval) -> list[JsonObject]:
    gate = "/spec/schedulingGates/0"
    return [
        {"op": "test", "path": "/metadata/uid", "value": removal.uid},
        {"op": "test", "path": f"{gate}/name", "value": QUOTA_GATE},
        {"op": "remove", "path": gate},
    ]
