"""Kubernetes' own PodGroups, for which claims are reserved in place of pods."""

from __future__ import annotations

from tests.chaos.objects import (
    OWNER_POD,
    QUEUE,
    WORKLOADS,
    Object,
    Snapshot,
    annotation,
    claims_of,
    is_over,
    label,
    queue_of,
    reserved_for,
    standing_groups,
    uid,
    workload_of,
)


def lacks_its_workload(pod: Object, snapshot: Snapshot) -> bool:
    """Whether its PodGroup is not there: kube-scheduler does not try it, and says nothing."""
    name = workload_of(pod)
    return bool(name) and not snapshot.get(WORKLOADS, name, pod["metadata"]["namespace"])


def has_another_queue(pod: Object, queue: str, snapshot: Snapshot) -> bool:
    """Whether a pod of its group with another queue uses a claim that the group reserved."""
    pods = snapshot.pods_by_uid()
    for claim in claims_of(pod, snapshot):
        if workload_of(pod) in standing_groups(claim, snapshot):
            others = {*reserved_for(claim, snapshot), annotation(claim, OWNER_POD)} - {uid(pod)}
            users = [pods[each] for each in others if each in pods]
            if any(_is_member(each, pod) and queue_of(each, snapshot) != queue for each in users):
                return True
            if _is_paid_by_another(claim, queue, snapshot):
                return True
    return False


def _is_paid_by_another(claim: Object, queue: str, snapshot: Snapshot) -> bool:
    """Whether the queue of earlier pods pays until the group's reservation is removed."""
    is_unused = not reserved_for(claim, snapshot)
    return is_unused and bool(annotation(claim, OWNER_POD)) and label(claim, QUEUE) != queue


def _is_member(other: Object, pod: Object) -> bool:
    return workload_of(other) == workload_of(pod) and not is_over(other)
