"""Evictions on the API server: all pods of a set, or none of them.

    dry_run: dry run of each eviction ─► do budgets allow all together? ─► evict each

The dry run makes a half-evicted set rare and does not rule it out: a budget may change between the
dry run and the eviction. Then the rest is tried again later.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass

from binder.evictions.disruption_budgets import CoveredPod, covered_pod, disruption_budget, too_many
from kube.backoff import Backoff
from kube.calls.api import (
    ApiClient,
    ApiError,
    ConflictError,
    NotFoundError,
    PermanentError,
    WriteOptions,
)
from kube.kinds import BUDGETS, PODS
from kube.objects import JsonObject
from kube.shapes.pods import Pod
from kube.shapes.reading import read_as
from scheduler_plugin.cleanup.api import PodToEvict
from scheduler_plugin.objects.api import Fence, check_fence

BUDGET_CAUSE = "DisruptionBudget"

EVICTED_SECONDS = 10.0
"""How long the watch may take to show an evicted pod; after that it is evicted again."""

HELD_BACK = Backoff(first_seconds=4.0, cap_seconds=60.0)
"""The back-off of pods that may not be evicted now."""


class HeldBackError(Exception):
    """Raised where a pod of the set may not be evicted now; the message says why.

    Attributes:
        pod: The pod; None where only all pods together may not be evicted.
    """

    def __init__(self, sentence: str, pod: PodToEvict | None = None) -> None:
        super().__init__(sentence)
        self.pod = pod


@dataclass(frozen=True, slots=True)
class Evictor:
    """Evicts sets of pods: fenced, with a time limit, and each with its UID as precondition.

    Attributes:
        write_seconds: The time limit of one call.
    """

    client: ApiClient
    fence: Fence
    _: KW_ONLY
    write_seconds: float

    async def dry_run(self, pods: Sequence[PodToEvict]) -> None:
        """Check by a dry run whether all of these pods may be evicted now.

        Raises:
            HeldBackError: A budget or a policy does not allow it.
            ApiError, FencedError: It is not known.
        """
        there = [pod for pod in pods if await self.evict(pod, dry_run=True)]
        for namespace in dict.fromkeys(pod.namespace for pod in there):
            together = [pod for pod in there if pod.namespace == namespace]
            if len(together) > 1:
                await self._check_budgets(namespace, together)

    async def _check_budgets(self, namespace: str, there: Sequence[PodToEvict]) -> None:
        pods = [await self._covered(pod) for pod in there]
        budgets = [b for obj in await self._budgets(namespace) if (b := disruption_budget(obj))]
        if why := too_many(budgets, [pod for pod in pods if pod is not None]):
            raise HeldBackError(why)

    async def has_budgets(self, namespace: str) -> bool:
        """Whether there is any budget in a namespace. Raises ApiError."""
        return bool(await self._budgets(namespace))

    async def _budgets(self, namespace: str) -> Sequence[JsonObject]:
        found = BUDGETS.select(namespace)
        return (await self.client.list(found, timeout_seconds=self.write_seconds)).items

    async def evict(self, pod: PodToEvict, *, dry_run: bool = False) -> bool:
        """Evict a pod; False where it is gone, or another pod has its name.

        Raises as `dry_run` does.
        """
        check_fence(self.fence, self.write_seconds)
        options = WriteOptions(dry_run=dry_run, timeout_seconds=self.write_seconds)
        try:
            await self.client.create(PODS, _eviction(pod), subresource="eviction", options=options)
        except (NotFoundError, ConflictError):
            return False
        except ApiError as error:
            if _is_refusal(error):
                said = f"Pod {pod.namespace}/{pod.name}: {_message_of(error)}"
                raise HeldBackError(said, pod) from error
            raise
        return True

    async def _covered(self, pod: PodToEvict) -> CoveredPod | None:
        path = PODS.at(pod.name, pod.namespace)
        try:
            obj = await self.client.get(path, timeout_seconds=self.write_seconds)
        except NotFoundError:
            return None
        found = read_as(Pod, obj)
        return covered_pod(found) if found.metadata.uid == pod.uid else None


def _eviction(pod: PodToEvict) -> JsonObject:
    return {
        "apiVersion": "policy/v1",
        "kind": "Eviction",
        "metadata": {"name": pod.name, "namespace": pod.namespace},
        "deleteOptions": {"preconditions": {"uid": pod.uid}},
    }


def _is_refusal(error: ApiError) -> bool:
    """Whether the API server refused the eviction, and did not fail.

    It refuses a pod with several budgets by a status 500 without a reason.
    """
    if any(cause.get("reason") == BUDGET_CAUSE for cause in error.causes):
        return True
    return isinstance(error, PermanentError) or (error.status == 500 and not error.reason)


def _message_of(error: ApiError) -> str:
    causes = (str(cause.get("message", "")) for cause in error.causes)
    return " ".join([error.message, *(cause for cause in causes if cause)])
