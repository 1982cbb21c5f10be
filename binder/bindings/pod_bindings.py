"""A pod's binding, and the outcome of an attempt to bind it, as the pod shows it."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum, auto
from typing import Any

from kube.shapes.pods import NO_SPEC, Pod
from kube.shapes.reading import JsonObject, read_as
from scheduler_plugin.objects.api import BindRequest
from scheduler_plugin.objects.names import QUEUE_ANNOTATION


class BindingState(Enum):
    """The outcome of an attempt to bind a pod."""

    BOUND = auto()
    ELSEWHERE = auto()
    """The pod is bound to another node, where it runs and uses its claims."""

    GONE = auto()
    """The pod is deleted, terminating, or replaced by another of its name: it never runs."""

    UNBOUND = auto()
    UNKNOWN = auto()


@dataclass(frozen=True, slots=True)
class SeenBinding:
    """The outcome for a pod, and a sentence about it; "" for none."""

    binding_state: BindingState
    sentence: str = ""


def binding(request: BindRequest) -> dict[str, Any]:
    """The Binding of the pod with this UID, with the queue that counts from then on."""
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


def binding_state(obj: JsonObject | Pod, request: BindRequest) -> SeenBinding:
    """The outcome of an attempt to bind, read from the pod afterwards; raises UnreadableError."""
    pod = read_as(Pod, obj)
    what = f"Pod {request.namespace}/{request.name}"
    if pod.metadata.uid != request.uid:
        return SeenBinding(
            BindingState.GONE, f"{what} was deleted and replaced by another pod of that name."
        )
    if node := (pod.spec or NO_SPEC).node_name:
        if node == request.node:
            return SeenBinding(BindingState.BOUND)
        return SeenBinding(BindingState.ELSEWHERE, f'{what} is bound to node "{node}".')
    if pod.metadata.deletion_timestamp:
        return SeenBinding(BindingState.GONE, f"{what} is being deleted.")
    return SeenBinding(BindingState.UNBOUND)
