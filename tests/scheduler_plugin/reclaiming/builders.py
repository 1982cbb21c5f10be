"""Worlds in which pods wait for what their queues are guaranteed."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

from scheduler_plugin.accounting.world import World
from scheduler_plugin.objects.claims import ClaimView
from scheduler_plugin.objects.names import PodUid, Queue
from scheduler_plugin.objects.pod_objects import pod_view
from scheduler_plugin.objects.pods import PodView
from scheduler_plugin.reclaiming.cycles import Cycle
from scheduler_plugin.reclaiming.due_targets import is_due
from scheduler_plugin.reclaiming.placements import LimitsOnly
from scheduler_plugin.reclaiming.targets import Decision, Targets
from scheduler_plugin.reclaiming.victims.victims import NONE_EXCLUDED, ExcludedPods
from tests.scheduler_plugin.builders import (
    NOW,
    SETTINGS,
    a_claim,
    a_pod,
    a_pod_object,
    a_queue,
    a_request,
    a_result,
    a_world,
    an_allocated_claim,
    pod_uid,
)


def tree(**quotas: tuple[int, int]) -> list[Queue]:
    """Queues below one root with a limit of 3."""
    queues = [a_queue("root", onvif=(3, 3))]
    return queues + [a_queue(name, parent="root", onvif=value) for name, value in quotas.items()]


def use(
    queue: str, name: str, *foreign: tuple[str, str], cost: int = 1, **pod: Any
) -> list[ClaimView | PodView]:
    """A claim of a queue with one pod of it, both of this name, and foreign pods."""
    results = [a_result(f"r{number}") for number in range(cost)]
    requests = [a_request(name=f"r{number}") for number in range(cost)]
    users = [name, *(other for other, _ in foreign)]
    claim = an_allocated_claim(name, *users, queue=queue, results=results, requests=requests)
    pods = [a_used_pod(name, queue, name, **pod)]
    return [claim, *pods, *(a_used_pod(other, q, name) for other, q in foreign)]


def a_used_pod(name: str, queue: str, *claims: str, **overrides: Any) -> PodView:
    since = overrides.pop("since", "2026-11-21T11:30:00Z")
    deleting = overrides.pop("deleting", False)
    priority = overrides.pop("priority", 0)
    status = {"conditions": [{"type": "PodScheduled", "lastTransitionTime": since}]}
    fields = {"node": "n", "phase": "Running", "status": status, "spec": {"priority": priority}}
    obj = a_pod_object(name, queue=queue, claims=claims, **{**fields, **overrides})
    if deleting:
        obj["metadata"]["deletionTimestamp"] = "2026-11-21T12:00:30Z"
    return pod_view(obj, SETTINGS)


def waiting(queue: str = "mine", name: str = "w", cost: int = 1, **overrides: Any) -> list[Any]:
    requests = [a_request(name=f"r{number}") for number in range(cost)]
    priority = overrides.pop("priority", 0)
    pod = a_pod(name, queue=queue, claims=[name], spec={"priority": priority}, **overrides)
    return [a_claim(name, requests=requests), pod]


def a_full_world(*objects: object, **quotas: tuple[int, int]) -> World:
    """Every object may be a list of them."""
    flat: list[object] = []
    for found in objects:
        flat += found if isinstance(found, list) else [found]
    return a_world(*tree(**quotas), *flat)


def decided(world: World, name: str = "w", held_back: Collection[PodUid] = frozenset()) -> Decision:
    """What a cycle decides of a pod alone, by limits alone."""
    pod = world.facts.pod(pod_uid(name))
    assert pod is not None
    excluded = ExcludedPods(held_back=dict.fromkeys(held_back, "A budget needs it."))
    return Cycle(world, NOW, excluded, LimitsOnly()).serve(pod)


def taken(world: World, name: str = "w", held_back: Collection[PodUid] = frozenset()) -> list[str]:
    """Who has to go, by name."""
    decision = decided(world, name, held_back)
    return sorted(pod.name for pod in decision.pods) if isinstance(decision, Targets) else []


def is_still_due(take: Targets, world: World) -> bool:
    """Whether it would be carried out now."""
    queue_shares = Cycle(world, NOW, NONE_EXCLUDED, LimitsOnly()).queue_shares
    return is_due(take, world, NOW, NONE_EXCLUDED, queue_shares)


FULL = [use("robots", "r1"), use("robots", "r2"), use("robots", "r3")]
