"""A fake of what knows the waiting pods."""

from __future__ import annotations

from scheduler_plugin.objects.names import QueueName
from scheduler_plugin.waiting.admissions import Position, WaitingPod, WaitingPodQueries


class FakeWaitingPods(WaitingPodQueries):
    """Pod default/w waits, and no other."""

    not_told = ""
    place: Position | None = Position(QueueName("vision"), 2, 7)

    def why_unknown(self) -> str:
        return self.not_told

    def waiting(self, namespace: str, name: str) -> WaitingPod | str:
        if (namespace, name) != ("default", "w"):
            return f"Pod {namespace}/{name} does not wait."
        return WaitingPod(
            namespace=namespace,
            name=name,
            queue=QueueName("vision"),
            place=self.place,
            reason="OverLimit",
            message="It does not fit.",
        )
