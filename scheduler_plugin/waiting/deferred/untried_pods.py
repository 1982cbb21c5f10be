"""Pods that an earlier process admitted: without the gate, and not tried by kube-scheduler yet.

The assumptions of that process are lost. They are restored before the first decision, so that the
pods keep their room, for as long as any assumption lasts. A pod that kube-scheduler tried is not
assumed again: it may wait for another reason, without a time limit.
"""

from __future__ import annotations

from datetime import datetime

from scheduler_plugin.accounting.world import World
from scheduler_plugin.judging.pod_order import sort_key
from scheduler_plugin.judging.verdicts import Admitted, assume, judge
from scheduler_plugin.objects.names import PodUid
from scheduler_plugin.objects.pods import PodView, why_not_ours


def untried_pods(world: World) -> list[PodUid]:
    """The pods without the gate that kube-scheduler has not tried yet, in queue order."""
    turns = [sort_key(pod) for pod in world.facts.pods() if _awaits_attempt(pod, world)]
    return [turn[-1] for turn in sorted(turns)]


def restore_assumption(uid: PodUid, world: World, now: datetime) -> None:
    """Restore a pod's assumption if it would be admitted now; Filter judges the pod anew."""
    pod = world.facts.pod(uid)
    if pod is None or not _awaits_attempt(pod, world):
        return
    world.assumptions.expire(now)
    verdict = judge(pod, world.facts.claims_of(pod), world)
    if isinstance(verdict, Admitted):
        assume(pod, verdict, world, now)


def _awaits_attempt(pod: PodView, world: World) -> bool:
    if why_not_ours(pod, world.facts.settings):
        return False
    return pod.untried and pod.may_be_bound and pod.may_use_devices
