"""Rules on the claims that a pod uses: requests, number of consumers, and sharing policy."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from scheduler_plugin.judging.cases import Case
from scheduler_plugin.judging.named_holders import MayName
from scheduler_plugin.judging.rules.rule import Rule
from scheduler_plugin.objects.claims import ClaimView
from scheduler_plugin.objects.names import (
    MAX_PODS_ANNOTATION,
    PREEMPTIBILITY_LABELS,
    PodUid,
    QueueName,
    Reason,
)


class ClaimInvalid(Rule):
    """Numbers of slots are whole numbers."""

    reason = Reason.CLAIM_INVALID
    meaning = (
        "A claim asks for an invalid number of slots, such as `-1`; the sentence says where."
        " Only slots of Moorage's devices count, that is, of a class whose selectors do not name"
        " another driver; capacities `slots` of other drivers are ignored. An allocated device"
        " costs at least 1, whatever the claim says."
    )

    def refusals(self, case: Case) -> Iterator[str]:
        for claim, problem in _problems(case):
            yield f"{claim} asks for an invalid number of slots: {problem}"

    def why_satisfied(self, case: Case) -> str:
        return "Its claims ask for whole numbers of slots."

    def remedies(self, case: Case, may_name: MayName) -> Iterator[str]:
        for claim in dict.fromkeys(claim for claim, _ in _problems(case)):
            yield (
                f"Create {claim} again with a whole number of slots of at least 1; a claim's spec"
                " cannot be changed."
            )


class ClaimFull(Rule):
    """A claim has a maximum number of consumers."""

    reason = Reason.CLAIM_FULL
    meaning = "The claim has 256 consumers, the maximum of its status."

    def refusals(self, case: Case) -> Iterator[str]:
        most = case.world.facts.settings.max_consumers
        for use in case.claims:
            if (count := _other_entries(case, use.claim)) >= most:
                yield f"{use.claim} has {count} consumers; a claim can have at most {most}."

    def why_satisfied(self, case: Case) -> str:
        most = case.world.facts.settings.max_consumers

        def said(claim: ClaimView) -> str:
            count = claim.consumer_entries
            return f"{claim} has {count} of {most} consumers"

        return _of_claims(case, said)

    def remedies(self, case: Case, may_name: MayName) -> Iterator[str]:
        most = case.world.facts.settings.max_consumers
        yield f"One of its {most} consumers must end, or the pod needs a claim of its own."


class TooManySharers(Rule):
    """A class may limit how many pods share one of its claims."""

    reason = Reason.TOO_MANY_SHARERS
    meaning = (
        "As many pods use the claim as its class allows"
        f" (annotation `{MAX_PODS_ANNOTATION}` of the DeviceClass)."
    )

    def refusals(self, case: Case) -> Iterator[str]:
        for use in case.claims:
            claim = use.claim
            for name in sorted(claim.classes):
                most = case.world.facts.catalog.max_pods(name)
                if most is None:
                    continue
                count = len(_sharers(case, claim))
                if count >= most:
                    yield (
                        f'{claim} is shared by {count} pods, and DeviceClass "{name}" allows at'
                        f" most {most}."
                    )

    def why_satisfied(self, case: Case) -> str:
        catalog = case.world.facts.catalog

        def said(claim: ClaimView) -> str:
            limits = [catalog.max_pods(name) for name in claim.classes]
            least = min((most for most in limits if most is not None), default=None)
            return f"{claim} may be shared by {'any number of' if least is None else least} pods"

        return _of_claims(case, said)

    def remedies(self, case: Case, may_name: MayName) -> Iterator[str]:
        catalog = case.world.facts.catalog
        for use in case.claims:
            for name in sorted(use.claim.classes):
                most = catalog.max_pods(name)
                if most is not None:
                    yield (
                        f"A pod that uses {use.claim} must end. Or let more pods share a claim:"
                        f" kubectl annotate --overwrite deviceclass {name}"
                        f" {MAX_PODS_ANNOTATION}={most + 1}."
                    )
        yield "Or use a claim of its own."


class ClaimSharingDenied(Rule):
    """The owner of each claim shares it with the pod's queue."""

    reason = Reason.CLAIM_SHARING_DENIED
    meaning = "The owner of the claim does not share with the pod's queue."

    def refusals(self, case: Case) -> Iterator[str]:
        for use in case.claims:
            if not case.world.facts.tree.shares_with(use.owner, case.queue):
                yield f"{not_shared(use.claim, use.owner, case.queue)}."

    def why_satisfied(self, case: Case) -> str:
        foreign = [use for use in case.claims if use.owner != case.queue]
        if not foreign:
            return "It uses no claim of another queue."
        said = (f'{use.claim} of queue "{use.owner}" is shared with it' for use in foreign)
        return "; ".join(said) + "."

    def remedies(self, case: Case, may_name: MayName) -> Iterator[str]:
        tree = case.world.facts.tree
        for use in case.claims:
            if use.owner != case.queue and not tree.shares_with(use.owner, case.queue):
                yield (
                    f'Queue "{use.owner}" (or the queue that it inherits from) must share its'
                    f' claims: spec.claimSharing.policy: Allow, or "{case.queue}" among'
                    " spec.claimSharing.queues."
                )
        yield _own_claim(case)


class ForeignNonPreemptible(Rule):
    """A non-preemptible pod must not keep a claim from its owner."""

    reason = Reason.FOREIGN_NON_PREEMPTIBLE
    meaning = (
        "Another queue owns the claim, and the pod is non-preemptible: by its label"
        f" `{PREEMPTIBILITY_LABELS[0]}`, else by a priority of 100 or more."
    )

    def refusals(self, case: Case) -> Iterator[str]:
        for use in case.claims:
            if use.owner != case.queue and case.pod.non_preemptible:
                yield (
                    f'{use.claim} belongs to queue "{use.owner}", and {case.pod} of queue'
                    f' "{case.queue}" is non-preemptible: it could keep the claim from its owner.'
                )

    def why_satisfied(self, case: Case) -> str:
        kind = "non-preemptible" if case.pod.non_preemptible else "preemptible"
        foreign = any(use.owner != case.queue for use in case.claims)
        return f"It is {kind}{'' if foreign else ', and uses no claim of another queue'}."

    def remedies(self, case: Case, may_name: MayName) -> Iterator[str]:
        least = case.world.facts.settings.non_preemptible_priority
        yield (
            f"Create the pod again with the label {PREEMPTIBILITY_LABELS[0]}: preemptible or with a"
            f" priority below {least}."
        )
        yield _own_claim(case)


def _problems(case: Case) -> Iterator[tuple[ClaimView, str]]:
    """Claims with an invalid number of slots, for classes that may select Moorage's devices."""
    catalog = case.world.facts.catalog
    for claim in (use.claim for use in case.claims):
        for alternative in (a for request in claim.requests for a in request.alternatives):
            if alternative.problem and catalog.may_have_slots(alternative.device_class):
                yield claim, alternative.problem


def _of_claims(case: Case, said: Callable[[ClaimView], str]) -> str:
    return "; ".join(said(use.claim) for use in case.claims) + "." if case.claims else "No claims."


def _other_entries(case: Case, claim: ClaimView) -> int:
    """The entries of `reservedFor` before the pod's, assumed pods included; 0 if it adds none.

    A PodGroup has one for all its pods.
    """
    facts, found = case.world.facts, set[str]()
    own = facts.entry_to_come(claim, case.pod)
    if not own:
        return 0
    for uid in case.world.assumptions.pods(claim.uid):
        pod = facts.pod(uid)
        entry = facts.entry_to_come(claim, pod) if pod is not None else uid
        if entry == own and uid != case.pod.uid:
            return 0
        found.add(entry)
    return claim.consumer_entries + len(found - {"", own, *claim.reserved_for})


def _sharers(case: Case, claim: ClaimView) -> set[PodUid]:
    """The pods that take precedence over this one: running ones, and those admitted earlier.

    Pods that the claim is reserved for and that are not bound yet take precedence in the order of
    their reservation, so that not all of them are refused.
    """
    facts = case.world.facts
    known = {pod.uid: pod for pod in facts.consumers(claim)}
    sharers: set[PodUid] = set()
    earlier = True
    for uid in claim.reserved_for:
        pod = known.get(uid)
        earlier = earlier and uid != case.pod.uid
        if (pod is None and earlier) or (pod and not pod.ended and (earlier or pod.is_bound)):
            sharers.add(uid)
    if case.pod.uid not in claim.reserved_for:
        sharers.update(case.world.assumptions.pods(claim.uid))
    return sharers - {case.pod.uid}


def not_shared(claim: ClaimView, owner: QueueName, queue: QueueName) -> str:
    """Why a queue may not use a claim, without the full stop."""
    return (
        f'{claim} belongs to queue "{owner}", which does not share its claims with queue "{queue}"'
    )


def _own_claim(case: Case) -> str:
    return f'Or use a claim of its own, which queue "{case.queue}" pays for.'
