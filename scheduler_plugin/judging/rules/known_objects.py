"""Rules on the objects that a pod names: a pod is not judged before all of them are known."""

from __future__ import annotations

from collections.abc import Iterator

from scheduler_plugin.judging.cases import Case
from scheduler_plugin.judging.named_holders import MayName
from scheduler_plugin.judging.rules.rule import Rule
from scheduler_plugin.objects.names import Reason
from scheduler_plugin.objects.pods import PodClaim


class NotKnownYet(Rule):
    """All objects that decide about the charges are known."""

    reason = Reason.NOT_KNOWN_YET
    meaning = (
        "A claim of the pod, its namespace, or the PodGroup that it names is not known yet, or the"
        " claim of a template is not made yet. The pod waits for it: an unknown claim could cost"
        " anything, and an unknown object could name another queue. If it decides the owner of a"
        " claim, all pods of the claim wait. Or the CEL selectors that decide what a claim costs"
        " are not evaluated yet."
    )
    is_final = True

    def refusals(self, case: Case) -> Iterator[str]:
        for entry in case.unknown:
            if not entry.claim:
                template = f"ResourceClaimTemplate {case.pod.namespace}/{entry.template}"
                yield f"{case.pod} has no claim yet that is made of {template}."
            elif not _is_gone(entry, case):
                yield f"{_claim(entry, case)}, which {case.pod} names, is not known yet."
        if not _lacks_for_good(case):
            yield from _unknown_queues(case)
            yield from _unknown_costs(case)

    def why_satisfied(self, case: Case) -> str:
        names = [str(use.claim) for use in case.claims]
        return f"All that it names is known: {', '.join(names) or 'no accounted claims'}."

    def remedies(self, case: Case, may_name: MayName) -> Iterator[str]:
        for entry in case.unknown:
            if entry.is_to_be_made:
                template = f"{case.pod.namespace}/{entry.template}"
                yield (
                    f"ResourceClaimTemplate {template} must exist: kube-controller-manager then"
                    " makes the claim."
                )
            elif not _is_gone(entry, case):
                yield f"Create {_claim(entry, case)}."
        missing = case.world.facts.pod_queues.missing(case.pod, case.queue)
        if missing is not None and not missing.gone:
            yield f"{missing} must exist, since it decides the pod's queue."


class ClaimNotFound(Rule):
    """Each claim that the pod names exists, and is not terminating."""

    reason = Reason.CLAIM_NOT_FOUND
    meaning = (
        "The API server has no claim of that name; or the claim is being deleted: it is removed"
        " once no pod uses it, and takes no further pod. Until version 0.2 the reason was `Gone`."
    )
    is_final = True

    def refusals(self, case: Case) -> Iterator[str]:
        for entry in case.unknown:
            if entry.claim and _is_gone(entry, case):
                yield f"{_claim(entry, case)}, which {case.pod} names, does not exist."
        for terminating in case.terminating:
            yield f"{terminating}, which {case.pod} names, is being deleted."

    def why_satisfied(self, case: Case) -> str:
        return "Each claim that it names exists and is not being deleted."

    def remedies(self, case: Case, may_name: MayName) -> Iterator[str]:
        for entry in case.unknown:
            if entry.claim and _is_gone(entry, case):
                yield f"Create {_claim(entry, case)}."
        for terminating in case.terminating:
            yield f"Create {terminating} again once it is deleted, which is when no pod uses it."
        yield "Or delete the pod and create one that names a claim that exists."


class Gone(Rule):
    """The objects that decide the pod's queue were not deleted."""

    reason = Reason.GONE
    meaning = "The namespace or PodGroup that decides the pod's queue was deleted."
    is_final = True

    def refusals(self, case: Case) -> Iterator[str]:
        missing = case.world.facts.pod_queues.missing(case.pod, case.queue)
        if missing is not None and missing.gone:
            yield f"{case.what} needs a queue, and {missing}, which decides it, was deleted."

    def why_satisfied(self, case: Case) -> str:
        return "The objects that decide its queue were not deleted."

    def remedies(self, case: Case, may_name: MayName) -> Iterator[str]:
        missing = case.world.facts.pod_queues.missing(case.pod, case.queue)
        if missing is not None:
            yield f"Create {missing} again, since it decides the pod's queue."
        yield "Or delete the pod and create one with a queue of its own."


def _claim(entry: PodClaim, case: Case) -> str:
    return f"ResourceClaim {case.pod.namespace}/{entry.claim}"


def _is_gone(entry: PodClaim, case: Case) -> bool:
    """Whether the claim was deleted, or the API server said that there is none."""
    return case.world.facts.is_gone_claim((case.pod.namespace, entry.claim))


def _lacks_for_good(case: Case) -> bool:
    """Whether `ClaimNotFound` refuses, so that other unknown objects do not matter."""
    return bool(case.terminating) or any(
        entry.claim and _is_gone(entry, case) for entry in case.unknown
    )


def _unknown_costs(case: Case) -> Iterator[str]:
    for use in case.claims:
        if use.adds and use.claim.uid in case.world.facts.open_looks:
            yield (
                f"{use.claim} costs what its devices have, and the selectors that decide it are not"
                " evaluated yet."
            )


def _unknown_queues(case: Case) -> Iterator[str]:
    """Unknown queues of the pod and of its claims' owners, without those that `Gone` refuses."""
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
