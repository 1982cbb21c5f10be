"""Claims that are reserved for PodGroups: which pods use them.

With the feature `DRAWorkloadResourceClaims`, kube-scheduler reserves a claim that a PodGroup lists
for the group, once, in place of its pods. The entry says nothing about pods. It stands for the
bound pods that name the claim and the group, while the known PodGroup has the entry's UID:

    PodGroup known, its UID           the entry stands for its users
    PodGroup deleted, or another UID  the entry stands for no pod, and is removed
    PodGroup not known                its pods are unknown: nothing of the claim is cleared

kube-controller-manager removes the entry only after the PodGroup is deleted (Kubernetes 1.36 and
1.37, `syncClaim`), so `stale_claims` removes the entry of a group without users.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from scheduler_plugin.accounting.queues.pod_queues import PodQueues
from scheduler_plugin.objects.claims import ClaimView, GroupConsumer
from scheduler_plugin.objects.pods import PodView


def with_group_users(
    claim: ClaimView, naming: Iterable[PodView], pod_queues: PodQueues
) -> ClaimView:
    """A claim with the present users of its PodGroups among its consumers, in place of former ones.

    Args:
        claim: The claim, as the API server has it or as an earlier call returned it.
        naming: The pods that name it.
        pod_queues: The known PodGroups.
    """
    groups = all_groups(claim)
    unknown = tuple(g for g in groups if _is_unknown(g, claim.namespace, pod_queues))
    standing = {g.name for g in groups if stands(g, claim.namespace, pod_queues)}
    former = set(claim.group_users)
    own = tuple(uid for uid in claim.reserved_for if uid not in former)
    users = [pod for pod in naming if _uses(pod, standing) and pod.uid not in own]
    uids = tuple(pod.uid for pod in sorted(users, key=_seniority))
    return replace(
        claim,
        reserved_for=(*own, *uids),
        groups=tuple(group for group in groups if group not in unknown),
        group_users=uids,
        unknown_groups=unknown,
        other_consumers=claim.other_consumers + len(unknown) - len(claim.unknown_groups),
    )


def all_groups(claim: ClaimView) -> tuple[GroupConsumer, ...]:
    """The PodGroups that a claim is reserved for, known or not."""
    return (*claim.groups, *claim.unknown_groups)


def stands(group: GroupConsumer, namespace: str, pod_queues: PodQueues) -> bool:
    """Whether the entry stands for pods: the known PodGroup has its UID."""
    known = pod_queues.own_group(namespace, group.name)
    return known is not None and known.uid == group.uid


def _is_unknown(group: GroupConsumer, namespace: str, pod_queues: PodQueues) -> bool:
    """Whether the PodGroup is neither known nor known to be deleted."""
    known = pod_queues.own_group(namespace, group.name)
    return known is None and not pod_queues.is_gone_group(namespace, group.name)


def _uses(pod: PodView, groups: set[str]) -> bool:
    return pod.scheduling_group in groups and pod.is_bound and not pod.ended


def _seniority(pod: PodView) -> tuple[str, str]:
    return pod.arrived_at, pod.name
