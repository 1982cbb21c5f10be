"""Quota is guaranteed: nobody waits below it while somebody above his own could go.

Whether that would help is tried: the checker takes one charge and its users out of what it sees,
and asks again what keeps the pod. So `QuotaUnmet` is believed only where it is true.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

from tests.chaos.charges import Amounts, Charge, charges, tree_of, usage
from tests.chaos.findings import Finding
from tests.chaos.objects import (
    Key,
    Object,
    Snapshot,
    group_of,
    is_going,
    is_non_preemptible,
    priority_of,
    queue_of,
    reserved_for,
    shown,
    uid,
)
from tests.chaos.queue_tree import Tree
from tests.chaos.vendor_supply import has_a_choice
from tests.chaos.verdicts import NO_DEVICE, adds, reasons, waits


def guarantee_findings(snapshot: Snapshot) -> Iterator[Finding]:
    """Pods that wait within their quota, each with one who could go for it."""
    tree, found = tree_of(snapshot), list(charges(snapshot))
    own = usage(found, tree)
    for pod in snapshot.all("pods"):
        queue = queue_of(pod, snapshot)
        if not _waits_within_quota(pod, queue, own, snapshot):
            continue
        wanted = adds(pod, queue, snapshot)[queue]
        for charge in found:
            if _is_over(charge, queue, wanted, own, tree) and _may_go(charge, pod, snapshot):
                sentence = f"queue {queue} is below its quota, and {charge.what} could go"
                yield Finding("guarantee", f"pod {shown(pod)}", sentence)
                break


def _waits_within_quota(
    pod: Object, queue: str, own: Mapping[str, Amounts], snapshot: Snapshot
) -> bool:
    """Of a pod that waits for others of its group, or for several queues, nothing is said.

    Nor of one that takes one thing or another.
    """
    if not waits(pod) or group_of(pod, snapshot) or has_a_choice(pod, snapshot):
        return False
    why, added = reasons(pod, snapshot), adds(pod, queue, snapshot)
    if not why or not why <= {"OverLimit", NO_DEVICE} or [*added] != [queue]:
        return False
    tree = tree_of(snapshot)
    return all(
        own.get(each, {}).get(resource, 0) + amount <= tree.quota(each, resource)
        for resource, amount in added[queue].items()
        for each in tree.path(queue)
        if each == queue or tree.lists(each, resource)
    )


def _is_over(
    charge: Charge, queue: str, wanted: Amounts, own: Mapping[str, Amounts], tree: Tree
) -> bool:
    """Whether its queue is above its quota of what is wanted, as is each below where both part."""
    mine = tree.path(queue)
    apart = [each for each in tree.path(charge.queue) if each not in mine]
    resources = [resource for resource in wanted if charge.amounts.get(resource)]
    above = (
        own.get(each, {}).get(resource, 0) > tree.quota(each, resource)
        for resource in resources
        for each in apart
        if each == charge.queue or tree.lists(each, resource)
    )
    return bool(apart) and bool(resources) and all(above)


def _may_go(charge: Charge, pod: Object, snapshot: Snapshot) -> bool:
    users = _users_of(charge, snapshot)
    held = any(
        is_non_preemptible(user)
        or is_going(user)
        or is_guarded(user, snapshot)
        or _is_its_equal(user, pod, snapshot)
        for user in users
    )
    return bool(users) and not held and not reasons(pod, _without(charge, users, snapshot))


def _users_of(charge: Charge, snapshot: Snapshot) -> list[Object]:
    """The pods for which something is charged."""
    pods = snapshot.pods_by_uid()
    if charge.uid in pods:
        return [pods[charge.uid]]
    for claim in snapshot.all("resourceclaims"):
        if claim["metadata"]["uid"] == charge.uid:
            return [pods[each] for each in reserved_for(claim, snapshot) if each in pods]
    return []


def _is_its_equal(user: Object, pod: Object, snapshot: Snapshot) -> bool:
    """Whether both are of one queue: there only who has the lower priority goes for another.

    It may use what another queue is charged for, and that queue may be above its quota.
    """
    if queue_of(user, snapshot) != queue_of(pod, snapshot):
        return False
    return priority_of(user) >= priority_of(pod)


def _without(charge: Charge, users: list[Object], snapshot: Snapshot) -> Snapshot:
    gone = {charge.uid, *map(uid, users)}

    def rest(kind: str, keep: Callable[[Object], bool]) -> Mapping[Key, Object]:
        return {key: each for key, each in snapshot.objects.get(kind, {}).items() if keep(each)}

    kept = {
        "pods": rest("pods", lambda each: uid(each) not in gone),
        "resourceclaims": rest("resourceclaims", lambda each: uid(each) not in gone),
    }
    return Snapshot({**snapshot.objects, **kept})


def is_guarded(pod: Object, snapshot: Snapshot) -> bool:
    """Whether a budget may keep it; the trials' budgets are for all pods of a namespace."""
    budgets = snapshot.objects.get("poddisruptionbudgets", {})
    return any(namespace == pod["metadata"]["namespace"] for namespace, _ in budgets)
