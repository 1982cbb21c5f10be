"""Mirror pods, by which a kubelet reports its static pods; no verdict was made about them.

A kubelet may report any number of them. So the mirror pods of one node together are charged no more
than the node's devices: the oldest first, each later one what remains.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Iterator
from typing import TypeAlias

from scheduler_plugin.objects.names import PodUid
from scheduler_plugin.objects.pods import PodView

_Turn: TypeAlias = tuple[str, str, str, PodUid]


def is_capped(pod: PodView) -> bool:
    """Whether a pod is charged no more than its node has left for it."""
    uses = pod.is_bound and not pod.ended and bool(pod.requests)
    return uses and pod.is_mirror and not pod.queue_is_bound


class MirrorPods:
    """The capped mirror pods, by node."""

    def __init__(self) -> None:
        self._on: dict[str, list[_Turn]] = {}

    def put(self, pod: PodView) -> None:
        """Enter a pod, if it is capped; it must not be entered yet."""
        if is_capped(pod):
            insort(self._on.setdefault(pod.node, []), _turn(pod))

    def remove(self, pod: PodView) -> None:
        """Remove a pod, if it is capped; it must be entered."""
        if is_capped(pod):
            turns = self._on[pod.node]
            del turns[bisect_left(turns, _turn(pod))]
            if not turns:
                del self._on[pod.node]

    def on(self, node: str) -> list[PodUid]:
        """The capped pods of a node, the oldest first."""
        return [turn[-1] for turn in self._on.get(node, ())]

    def before(self, pod: PodView) -> Iterator[PodUid]:
        """The older capped pods of the pod's node, the oldest first; none unless it is capped."""
        mine = _turn(pod)
        turns = self._on.get(pod.node, []) if is_capped(pod) else []
        for turn in turns:
            if turn >= mine:
                return
            yield turn[-1]


def _turn(pod: PodView) -> _Turn:
    return (pod.created, pod.namespace, pod.name, pod.uid)
