"""Mirror pods: a kubelet shows by them its static pods, which nobody judged.

A kubelet may show as many as it likes. So what those of one node cost together is no more than the
node can hold: the oldest first, each of the later ones what is left.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Iterator
from typing import TypeAlias

from scheduler_plugin.objects.names import PodUid
from scheduler_plugin.objects.pods import PodView

_Turn: TypeAlias = tuple[str, str, str, PodUid]


def is_capped(pod: PodView) -> bool:
    """Whether a pod costs no more than what its node has left."""
    uses = pod.is_bound and not pod.ended and bool(pod.requests)
    return uses and pod.is_mirror and not pod.queue_is_bound


class MirrorPods:
    """Those that are capped, by their nodes."""

    def __init__(self) -> None:
        self._on: dict[str, list[_Turn]] = {}

    def put(self, pod: PodView) -> None:
        """Enter a pod, if it is one, which must not be there."""
        if is_capped(pod):
            insort(self._on.setdefault(pod.node, []), _turn(pod))

    def remove(self, pod: PodView) -> None:
        """Take out a pod, if it is one, which must be there."""
        if is_capped(pod):
            turns = self._on[pod.node]
            del turns[bisect_left(turns, _turn(pod))]
            if not turns:
                del self._on[pod.node]

    def on(self, node: str) -> list[PodUid]:
        """All of a node, the oldest first."""
        return [turn[-1] for turn in self._on.get(node, ())]

    def before(self, pod: PodView) -> Iterator[PodUid]:
        """Those of its node that are older, the oldest first; none for one that is not capped."""
        mine = _turn(pod)
        turns = self._on.get(pod.node, []) if is_capped(pod) else []
        for turn in turns:
            if turn >= mine:
                return
            yield turn[-1]


def _turn(pod: PodView) -> _Turn:
    return (pod.created, pod.namespace, pod.name, pod.uid)
