"""Rules on what a pod names: what is not known is not judged, as it could cost anything."""

from __future__ import annotations

from collections.abc import Iterator

from scheduler_plugin.judging.cases import Case
from scheduler_plugin.judging.named_holders import MayName
from scheduler_plugin.judging.rules.rule import Rule
from scheduler_plugin.objects.names import Reason
from scheduler_plugin.objects.pods import PodClaim


class NotKnownYet(Rule):
    """All that decides who is charged is known."""

    reason = Reason.NOT_KNOWN_YET
    meaning = (
        "A claim of the pod, its namespace, or the PodGroup that it names is not known yet, or the"
        " claim of a template is not made yet. The pod waits for it: nothing is taken to cost"
        " nothing, and no other queue is taken instead. Where the owner of a claim follows from"
        " it, all pods of the claim wait."
    )
    ends = True

    def refusals(self, case: Case) -> Iterator[str]:
        for entry in case.unknown:
            if not entry.claim:
                template = f"ResourceClaimTemplate {case.pod.namespace}/{entry.template}"
                yield f"{case.pod} has no claim yet that is made of {template}."
            elif not _is_gone(entry, case):
                yield f"{_claim(entry, case)}, which {case.pod} names, is not known yet."
        if not _lacks_for_good(case):
            yield from _unknown_queues(case)

    def passes(self, case: Case) -> str:
        names = [str(use.claim) for use in case.claims]
        return f"All that it names is known: {', '.join(names) or 'no accounted claims'}."

    def remedies(self, case: Case, may_name: MayName) -> Iterator[str]:
        for entry in case.unknown:
            if entry.is_to_be_made:
                template = f"{case.pod.namespace}/{entry.template}"
                yield (
                    f"ResourceClaimTemplate {template} has to exist: kube-controller-manager makes"
                    " the claim of it, in a moment."
                )
            elif not _is_gone(entry, case):
                yield f"{_claim(entry, case)} has to be created."
        missing = case.world.facts.pod_queues.missing(case.pod, case.queue)
        if missing is not None and not missing.gone:
            yield f"{missing} has to be there, since it says the pod's queue."


class ClaimNotFound(Rule):
    """Each claim that the pod names exists, and stays."""

    reason = Reason.CLAIM_NOT_FOUND
    meaning = (
        "The API server has no claim of that name; or the claim is being deleted: it goes once no"
        " pod uses it, and takes no further one. Until version 0.2 the reason was `Gone`."
    )
    ends = True

    def refusals(self, case: Case) -> Iterator[str]:
        for entry in case.unknown:
            if entry.claim and _is_gone(entry, case):
                yield f"{_claim(entry, case)}, which {case.pod} names, does not exist."
        for going in case.going:
            yield f"{going}, which {case.pod} names, is being deleted."

    def passes(self, case: Case) -> str:
        return "Each claim that it names exists and is not being deleted."

    def remedies(self, case: Case, may_name: MayName) -> Iterator[str]:
        for entry in case.unknown:
            if entry.claim and _is_gone(entry, case):
                yield f"Create {_claim(entry, case)}."
        for going in case.going:
            yield f"Create {going} anew once it is gone: it goes when no pod uses it."
        yield "Or delete the pod and create one that names a claim that exists."


class Gone(Rule):
    """What says the pod's queue was not deleted."""

    reason = Reason.GONE
    meaning = "The namespace or PodGroup that says the pod's queue was deleted."
    ends = True

    def refusals(self, case: Case) -> Iterator[str]:
        missing = case.world.facts.pod_queues.missing(case.pod, case.queue)
        if missing is not None and missing.gone:
            yield f"{case.what} needs a queue, and {missing}, which would say it, is gone."

    def passes(self, case: Case) -> str:
        return "What says its queue was not deleted."

    def remedies(self, case: Case, may_name: MayName) -> Iterator[str]:
        missing = case.world.facts.pod_queues.missing(case.pod, case.queue)
        if missing is not None:
            yield f"Create {missing} anew, since it says the pod's queue."
        yield "Or delete the pod and create one with a queue of its own."


def _claim(entry: PodClaim, case: Case) -> str:
    return f"ResourceClaim {case.pod.namespace}/{entry.claim}"


def _is_gone(entry: PodClaim, case: Case) -> bool:
    """Whether the claim was deleted, or the API server said that there is none."""
    return case.world.facts.is_gone_claim((case.pod.namespace, entry.claim))


def _lacks_for_good(case: Case) -> bool:
    """Whether `ClaimNotFound` refuses: then it does not matter what else is still to come."""
    return bool(case.going) or any(entry.claim and _is_gone(entry, case) for entry in case.unknown)


def _unknown_queues(case: Case) -> Iterator[str]:
    """Of the pod, and of the owners of its claims; a queue that `Gone` refuses is no such one."""
    missing = case.world.facts.pod_queues.missing(case.pod, case.queue)
    if missing is not None:
        if not missing.gone:
            yield f"{case.what} needs a queue, and waits for {missing}, which is not known yet."
        return
    for use in case.claims:
        pod = use.awaited
        missing = case.world.facts.pod_queues.missing(pod) if pod is not None else None
        if missing is not None:
            yield (
                f"{use.claim} belongs to the queue of {pod}, and waits for {missing}, which is"
                " not known yet."
            )
