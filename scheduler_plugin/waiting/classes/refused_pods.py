"""Waiting pods without a gate: kube-scheduler tried them, and Filter or Bind refused them.

kube-scheduler tries such a pod again after an event that it watches. It watches neither Queues nor
assumptions that lapse, and it may see an event before this process does. So refused pods are kept
here until kube-scheduler tries them again, and the gate keeper decides about them as well.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Iterator

from scheduler_plugin.accounting.world_views import WorldView
from scheduler_plugin.objects.names import PodUid
from scheduler_plugin.objects.pods import PodView

MOST = 10_000
"""The largest number of pods. Beyond it the pods that were refused first are dropped, and only
kube-scheduler retries them."""


def _ignore(_: PodUid) -> None:
    """Ignore a change."""


class RefusedPods:
    """The pods that were refused in kube-scheduler's last attempt."""

    def __init__(self) -> None:
        self.changed: Callable[[PodUid], None] = _ignore
        """Called with each pod that is tried, and with each that is dropped."""
        # An ordered set, the pod that was refused first at its head.
        self._pods: dict[PodUid, None] = {}

    def __len__(self) -> int:
        return len(self._pods)

    def __contains__(self, pod: object) -> bool:
        return pod in self._pods

    def __iter__(self) -> Iterator[PodUid]:
        return iter(self._pods)

    def answered(self, pod: PodUid, *, refused: bool) -> None:
        """kube-scheduler tried a pod; `refused` is the answer."""
        known = pod in self._pods
        self._pods.pop(pod, None)
        if refused:
            self._pods[pod] = None
        if known or refused:
            self.changed(pod)
        if len(self._pods) > MOST:
            self.answered(next(iter(self._pods)), refused=False)

    def forget(self, pod: PodUid) -> None:
        """The pod is gone or runs: kube-scheduler will not try it again."""
        self._pods.pop(pod, None)


def as_it_waits(world: WorldView, refused: Container[PodUid], uid: PodUid) -> PodView | None:
    """A waiting pod, at the gate or refused, as it is to be judged; None for any other."""
    pod = world.facts.pod(uid)
    if pod is None or pod.is_gated:
        return pod
    if uid not in refused or pod.gates or not pod.may_be_bound:
        return None
    # The claim for its extended resources belongs to an attempt that failed.
    return pod.without_extended_claim() if pod.extended_claim else pod
