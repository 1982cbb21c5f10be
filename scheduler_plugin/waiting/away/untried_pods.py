"""Pods that an earlier process let go: out of the gate, and not tried by kube-scheduler yet.

What was assumed of them went with that process. Believed in anew before the first decision, they
keep the room for which they were let go, for as long as any decision is believed. Of one that was
tried nothing is believed: it may wait for something else, for ever.
"""

from __future__ import annotations

from datetime import datetime

from scheduler_plugin.accounting.world import World
from scheduler_plugin.judging.turns import turn_of
from scheduler_plugin.judging.verdicts import Admitted, assume, judge
from scheduler_plugin.objects.names import PodUid
from scheduler_plugin.objects.pods import PodView, why_not_ours


def untried_pods(world: World) -> list[PodUid]:
    """The pods that kube-scheduler is about to try, in the order of their turns."""
    turns = [turn_of(pod) for pod in world.facts.pods() if _is_on_its_way(pod, world)]
    return [turn[-1] for turn in sorted(turns)]


def believe(uid: PodUid, world: World, now: datetime) -> None:
    """Assume a pod's binding if it would be admitted; when it is asked about, it is judged anew."""
    pod = world.facts.pod(uid)
    if pod is None or not _is_on_its_way(pod, world):
        return
    world.assumptions.expire(now)
    verdict = judge(pod, world.facts.claims_of(pod), world)
    if isinstance(verdict, Admitted):
        assume(pod, verdict, world, now)


def _is_on_its_way(pod: PodView, world: World) -> bool:
    if why_not_ours(pod, world.facts.settings):
        return False
    return pod.untried and pod.may_be_bound and pod.may_use_devices
