"""What the elected plugin knows about a pod and no object of the API has."""

from __future__ import annotations

from collections.abc import Callable

import msgspec

from scheduler_plugin.accounting.world_views import WorldView
from scheduler_plugin.objects.held_texts import held_text
from scheduler_plugin.waiting.admissions import WaitingPod


class PodAnswer(msgspec.Struct, frozen=True, kw_only=True):
    """What the elected plugin knows about a pod.

    Attributes:
        place: Its place in line, as a phrase; "" if it is in no line.
        reason: Why it waits, including decisions that are not visible yet; "" if it does not wait,
            or its gate is removed soon.
        message: The sentence of the reason.
        held: What is held for it, as a sentence; "" for nothing.
    """

    place: str
    reason: str = ""
    message: str = ""
    held: str = ""


def pod_answer(
    world: WorldView, waiting: Callable[[str, str], WaitingPod | str], namespace: str, name: str
) -> PodAnswer:
    """The current answer; `waiting` returns a waiting pod, or a sentence that it does not wait."""
    found = waiting(namespace, name)
    held = _held(world, namespace, name)
    if isinstance(found, str):
        return PodAnswer(place="", held=held)
    place = str(found.place) if found.place else ""
    return PodAnswer(place=place, reason=found.reason, message=found.message, held=held)


def _held(world: WorldView, namespace: str, name: str) -> str:
    pod = world.facts.pod_named(namespace, name)
    hold = world.assumptions.holds.get(pod.uid) if pod is not None else None
    return (held_text(hold.held) or "Held: room below limits.") if hold is not None else ""
