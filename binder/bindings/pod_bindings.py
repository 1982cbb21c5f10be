"""A pod's binding, and what a pod says of the attempt to bind it."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum, auto
from typing import Any

from kube.shapes.pods import NO_SPEC, Pod
from kube.shapes.reading import JsonObject, read_as
from scheduler_plugin.api import QUEUE_ANNOTATION, BindRequest


class Fate(Enum):
    """What became of a pod that was to be bound."""

    BOUND = auto()
    ELSEWHERE = auto()
    """Somebody bound it to another node: it runs, and uses its claims."""

    GONE = auto()
    """It is deleted, being deleted, or another pod of its name: it never runs."""

    UNBOUND = auto()
    UNKNOWN = auto()


@dataclass(frozen=True, slots=True)
class Seen:
    """A pod's fate, and a sentence about it; "" where there is nothing to say."""

    fate: Fate
    sentence: str = ""


def binding(request: BindRequest) -> dict[str, Any]:
    """The Binding: to the pod of this UID or to none, with the queue that counts from then on."""
    metadata: dict[str, Any] = {
        "namespace": request.namespace,
        "name": request.name,
        "uid": request.uid,
    }
    if request.queue:
        metadata["annotations"] = {QUEUE_ANNOTATION: request.queue}
    return {
        "apiVersion": "v1",
        "kind": "Binding",
        "metadata": metadata,
        "target": {"apiVersion": "v1", "kind": "Node", "name": request.node},
    }


def fate(obj: JsonObject | Pod, request: BindRequest) -> Seen:
    """What an attempt to bind came to, as the pod shows it afterwards; raises UnreadableError."""
    pod = read_as(Pod, obj)
    what = f"Pod {request.namespace}/{request.name}"
    if pod.metadata.uid != request.uid:
        return Seen(Fate.GONE, f"{what} was deleted, and another has its name.")
    if node := (pod.spec or NO_SPEC).node_name:
        if node == request.node:
            return Seen(Fate.BOUND)
        return Seen(Fate.ELSEWHERE, f'{what} is bound to node "{node}".')
    if pod.metadata.deletion_timestamp:
        return Seen(Fate.GONE, f"{what} is being deleted.")
    return Seen(Fate.UNBOUND)
