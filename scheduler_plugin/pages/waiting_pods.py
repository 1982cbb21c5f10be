"""A waiting pod, as it is told to whoever asks."""

from __future__ import annotations

from typing import Annotated

from pydantic import BaseModel, Field

from scheduler_plugin.waiting.decisions import WaitingPod


class WaitingPodPage(BaseModel):
    """A pod that waits for quota, as things are now."""

    namespace: str
    name: str
    queue: str
    place: Annotated[
        int | None,
        Field(description="In its line, from 1; null where it waits for more than its quota."),
    ]
    waiting: Annotated[int | None, Field(description="Pods in its line.")]
    reason: Annotated[str, Field(description='Why it does not go; "" where it is about to.')]
    message: str

    @classmethod
    def of(cls, pod: WaitingPod) -> WaitingPodPage:
        return cls(
            namespace=pod.namespace,
            name=pod.name,
            queue=pod.queue,
            place=pod.place.number if pod.place else None,
            waiting=pod.place.waiting if pod.place else None,
            reason=pod.reason,
            message=pod.message,
        )
