"""The pods without a gate that wait: kube-scheduler asked about them, and they were refused.

kube-scheduler tries such a pod again when something changes that it looks at. It looks at no Queues
and at no decisions that lapse, and it may hear of a change before this process does. So refused
pods are kept here until it asks about them anew: whoever decides about those that wait at the gate
decides about them as well.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from scheduler_plugin.objects.names import PodUid

MOST = 10_000
"""Pods; of more, those that were refused the longest ago are left to kube-scheduler."""


def _unheard(_: PodUid) -> None:
    """Nobody minds."""


class RefusedPods:
    """The pods that were refused when kube-scheduler asked about them last."""

    def __init__(self) -> None:
        self.changed: Callable[[PodUid], None] = _unheard
        """Called with each pod that is asked about, or is left to kube-scheduler."""
        # As an ordered set, the longest ago first.
        self._pods: dict[PodUid, None] = {}

    def __len__(self) -> int:
        return len(self._pods)

    def __contains__(self, pod: object) -> bool:
        return pod in self._pods

    def __iter__(self) -> Iterator[PodUid]:
        return iter(self._pods)

    def answered(self, pod: PodUid, *, refused: bool) -> None:
        """kube-scheduler asked about a pod and was answered."""
        known = pod in self._pods
        self._pods.pop(pod, None)
        if refused:
            self._pods[pod] = None
        if known or refused:
            self.changed(pod)
        if len(self._pods) > MOST:
            self.answered(next(iter(self._pods)), refused=False)

    def forget(self, pod: PodUid) -> None:
        """It is gone or runs: nobody will ask about it."""
        self._pods.pop(pod, None)
