"""What the elected plugin knows of a pod, and no object of the API says."""

from __future__ import annotations

from collections.abc import Callable

import msgspec

from scheduler_plugin.accounting.world_views import WorldView
from scheduler_plugin.objects.held_texts import held_text
from scheduler_plugin.waiting.decisions import WaitingPod


class PodAnswer(msgspec.Struct, frozen=True, kw_only=True):
    """What is known of a pod.

    Attributes:
        place: Its place in line, as a phrase; "" while it is in none.
        reason: Why it waits, by what was decided and is not visible yet; "" where it does not, or
            is about to go.
        message: The sentence for it.
        held: What is held for it, as a sentence; "" for nothing.
    """

    place: str
    reason: str = ""
    message: str = ""
    held: str = ""


def pod_answer(
    world: WorldView, waiting: Callable[[str, str], WaitingPod | str], namespace: str, name: str
) -> PodAnswer:
    """What is known now; `waiting` tells of pods that wait, else it says a sentence."""
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
