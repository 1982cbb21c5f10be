"""Gates that are removed because another pod of the PodGroup has left the gate.

kube-scheduler queues the pods of a PodGroup of Kubernetes' own API as one: while one of them has a
gate, it tries none of them (1.37, `runPreEnqueuePlugins` of its scheduling queue). A pod that was
admitted would wait for pods that do not fit. So once a pod of such a group has left the gate, all
of them do. Those that do not fit are refused by Filter, and tried again with back-off.

Pods without devices have no gate from the start. They do not open it for others.
"""

from __future__ import annotations

from scheduler_plugin.accounting.facts_views import FactsView
from scheduler_plugin.judging.gangs import active_members
from scheduler_plugin.objects.names import QUOTA_GATE
from scheduler_plugin.objects.pods import PodView
from scheduler_plugin.waiting.admissions import GateRemoval


def left_behind(pod: PodView, facts: FactsView) -> tuple[GateRemoval, ...]:
    """The gates to remove in the pod's group, since another pod of it has left the gate.

    A pod with further gates keeps Moorage's, too: kube-scheduler does not try the group yet.
    """
    members = [member for member in active_members(pod, facts) if _waits_in_group(member, pod)]
    if not any(member.may_use_devices and not member.gates for member in members):
        return ()
    return tuple(
        GateRemoval(
            namespace=member.namespace,
            name=member.name,
            uid=member.uid,
            queue=facts.queue_of(member),
        )
        for member in members
        if member.gates == (QUOTA_GATE,)
    )


def _waits_in_group(member: PodView, pod: PodView) -> bool:
    return member.may_be_bound and bool(member.scheduling_group) and member.group == pod.group
