"""Rules on PodGroups; `gangs` has the decision on pods that are admitted together."""

from __future__ import annotations

from collections.abc import Iterator

from scheduler_plugin.judging.cases import Case
from scheduler_plugin.judging.named_holders import MayName
from scheduler_plugin.judging.rules.rule import Rule
from scheduler_plugin.objects.claims import ClaimView
from scheduler_plugin.objects.names import NO_QUEUE, OwnerLifetime, QueueName, Reason
from scheduler_plugin.objects.pods import PodView


class PodGroupIncomplete(Rule):
    """The group has enough pods. The rule never refuses a single pod; `gangs` does."""

    reason = Reason.POD_GROUP_INCOMPLETE
    meaning = (
        "The pod is admitted only with others of its PodGroup, and the group has too few pods, or"
        " does not exist, or was just evicted."
    )

    def refusals(self, case: Case) -> Iterator[str]:
        return iter(())

    def why_satisfied(self, case: Case) -> str:
        return "It may be admitted alone."

    def remedies(self, case: Case, may_name: MayName) -> Iterator[str]:
        yield ("Its PodGroup is admitted as a whole: it must have as many pods as its minMember.")

    def not_there(self, pod: PodView) -> str:
        return f"{pod} is admitted only with its {group_of(pod)}, which does not exist."

    def too_few(self, pod: PodView, least: int, there: int) -> str:
        return f"{as_a_whole(pod, least)}, and has {there}."

    def given_up(self, pod: PodView, until: str) -> str:
        return (
            f"{group_of(pod)} was evicted, since too few of its pods ran: it may be admitted again"
            f" at {until}."
        )


class PodGroupQueueMismatch(Rule):
    """The pods that use a claim through one reservation of their PodGroup have one queue.

    The queue of the first of them may become the owner of the claim. kube-scheduler reserves the
    claim once for all of them, so a member of another queue has no reservation of its own.
    """

    reason = Reason.POD_GROUP_QUEUE_MISMATCH
    meaning = (
        "The claim is reserved for the pod's PodGroup, and a pod of the group that has another"
        " queue uses it, or did so last: all pods of such a group must have one queue."
    )

    def refusals(self, case: Case) -> Iterator[str]:
        for use in case.claims:
            if (other := _of_another_queue(use.claim, case)) is not None:
                yield (
                    f"{use.claim} is reserved for {group_of(case.pod)}, and {other} of queue"
                    f' "{case.world.facts.queue_of(other)}" uses it; {case.pod} is of queue'
                    f' "{case.queue}".'
                )
            elif former := _former_payer(use.claim, case):
                yield (
                    f'{use.claim} is reserved for {group_of(case.pod)}, and queue "{former}" pays'
                    f" for it until the reservation is removed; {case.pod} is of queue"
                    f' "{case.queue}".'
                )

    def why_satisfied(self, case: Case) -> str:
        facts = case.world.facts
        claims = [u.claim for u in case.claims if facts.is_reserved_for_group(u.claim, case.pod)]
        if not claims:
            return "It uses no claim that is reserved for its PodGroup."
        named = ", ".join(map(str, claims))
        return f'The other pods of its PodGroup that use {named} are of its queue "{case.queue}".'

    def remedies(self, case: Case, may_name: MayName) -> Iterator[str]:
        yield (
            "All pods of a PodGroup that a claim is reserved for must have one queue: create the"
            " pod again with the queue label of the others. A reservation that no pod uses is"
            " removed after two minutes."
        )


def _of_another_queue(claim: ClaimView, case: Case) -> PodView | None:
    """Another pod of the group that uses the claim, or became its owner, and has another queue."""
    facts = case.world.facts
    if not facts.is_reserved_for_group(claim, case.pod):
        return None
    pods = list(facts.consumers(claim))
    if (owner := facts.pod(claim.owner_pod)) is not None:
        pods.append(owner)
    return next((pod for pod in pods if _is_member_of_another_queue(pod, case)), None)


def _former_payer(claim: ClaimView, case: Case) -> QueueName:
    """The other queue that pays for a claim of the group alone, without users; "" for none."""
    facts = case.world.facts
    if claim.consumer_entries > 1 or claim.reserved_for or not claim.owner_pod:
        return NO_QUEUE
    is_for_ever = facts.settings.owner_lifetime is OwnerLifetime.CLAIM
    if is_for_ever or not facts.is_reserved_for_group(claim, case.pod):
        return NO_QUEUE
    return claim.label if claim.label != case.queue else NO_QUEUE


def _is_member_of_another_queue(pod: PodView, case: Case) -> bool:
    facts = case.world.facts
    if pod.scheduling_group != case.pod.scheduling_group or pod.ended or pod.uid == case.pod.uid:
        return False
    return facts.knows_queue_of(pod) and facts.queue_of(pod) != case.queue


def group_of(pod: PodView) -> str:
    return f"PodGroup {pod.namespace}/{pod.group}"


def as_a_whole(pod: PodView, pods: int) -> str:
    """How many pods are admitted together, without the full stop."""
    return f"{group_of(pod)} is admitted as a whole, {pods} pods together"
