"""The pods without a gate that wait: kube-scheduler asked about them, and they were refused.

kube-scheduler tries such a pod again when something changes that it looks at. It looks at no Queues
and at no decisions that lapse, and it may hear of a change before this process does. So refused
pods are kept here until it asks about them anew: whoever decides about those that wait at the gate
decides about them as well.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Iterator

from scheduler_plugin.accounting.world_views import WorldView
from scheduler_plugin.objects.names import PodUid
from scheduler_plugin.objects.pods import PodView

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


def as_it_waits(world: WorldView, refused: Container[PodUid], uid: PodUid) -> PodView | None:
    """A pod that waits, at the gate or because it was refused; None for any other."""
    pod = world.facts.pod(uid)
    if pod is None or pod.is_gated:
        return pod
    if uid not in refused or pod.gates or not pod.may_be_bound:
        return None
    # A claim for its extended resources is of an attempt that failed.
    return pod.without_extended_claim() if pod.extended_claim else pod
