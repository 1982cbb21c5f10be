"""Whether what is held for a pod is still in use by those who have to leave it."""

from __future__ import annotations

from scheduler_plugin.accounting.facts import Facts
from scheduler_plugin.accounting.holds import Hold
from scheduler_plugin.objects.claims import ClaimView
from scheduler_plugin.objects.names import ClaimUid, PodUid


def is_awaited(hold: Hold, facts: Facts) -> bool:
    """Whether some user of what was taken has not ended yet: until then nobody else can get it."""
    return any(_has_users(uid, facts) for uid in hold.awaits)


def is_given_up(claim: ClaimView, joiner: PodUid, facts: Facts) -> bool:
    """Whether all users of an allocated claim are on their way out, but for one that would join."""
    users = [facts.pod(uid) for uid in claim.reserved_for if uid != joiner]
    return bool(users) and all(pod is not None and (pod.ended or pod.deleting) for pod in users)


def _has_users(uid: ClaimUid, facts: Facts) -> bool:
    claim = facts.claim(uid)
    if claim is None or not claim.is_allocated:
        return False
    return any(pod.is_bound and not pod.ended for pod in facts.consumers(claim))
