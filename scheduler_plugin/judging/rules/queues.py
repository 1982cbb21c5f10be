"""Rules on the queues that would be charged: they exist, and the pod may use them."""

from __future__ import annotations

from collections.abc import Iterator

from scheduler_plugin.accounting.queues.effective_sharing import why_not_admitted
from scheduler_plugin.judging.cases import Case, ClaimUse
from scheduler_plugin.judging.named_holders import MayName
from scheduler_plugin.judging.rules.rule import Rule
from scheduler_plugin.objects.names import QueueName, Reason, SharingPolicy


class NoQueue(Rule):
    """The pod has a queue."""

    reason = Reason.NO_QUEUE
    meaning = "The pod has no queue."
    is_final = True

    def refusals(self, case: Case) -> Iterator[str]:
        if not case.queue:
            yield (
                f"{case.what} needs a queue, and {case.pod} has none: no label"
                f' "{case.world.facts.settings.queue_label}" of its own, of its PodGroup or of its'
                " namespace, and there is no default."
            )

    def why_satisfied(self, case: Case) -> str:
        return f'Its queue is "{case.queue}".'

    def remedies(self, case: Case, may_name: MayName) -> Iterator[str]:
        label, namespace = case.world.facts.settings.queue_label, case.pod.namespace
        yield f"Give its namespace a queue: kubectl label namespace {namespace} {label}=QUEUE."
        yield f"Or create the pod again with the label {label}: it cannot be added later."


class QueueNotFound(Rule):
    """The queues exist, and are not terminating. A terminating queue takes no new charge."""

    reason = Reason.QUEUE_NOT_FOUND
    meaning = (
        "The pod's queue, or that of a claim's label, does not exist; or it, or a queue above it,"
        " is being deleted."
    )
    is_final = True

    def refusals(self, case: Case) -> Iterator[str]:
        tree = case.world.facts.tree
        if case.queue not in tree:
            yield f'{case.what} needs a queue, and queue "{case.queue}" does not exist.'
        for use in case.claims:
            if (use.adds or use.is_users) and use.owner not in tree:
                yield f'{use.claim} belongs to queue "{use.owner}", which does not exist.'
        if terminating := _terminating_queue(case, case.queue):
            yield f"{case.what} needs a queue, and {_takes_nothing(terminating, case.queue)}."
        for use in case.claims:
            if use.adds and (terminating := _terminating_queue(case, use.owner)):
                said = _takes_nothing(terminating, use.owner)
                yield f'{use.claim} belongs to queue "{use.owner}", and {said}.'

    def why_satisfied(self, case: Case) -> str:
        above = case.world.facts.tree.path(case.queue)[1:]
        return f'Queue "{case.queue}" exists{", below " + " and ".join(above) if above else ""}.'

    def remedies(self, case: Case, may_name: MayName) -> Iterator[str]:
        for name in dict.fromkeys([case.queue, *(use.owner for use in case.claims)]):
            if name not in case.world.facts.tree:
                yield (
                    f'Create Queue "{name}", or create the pod (or claim) again with a queue that'
                    " exists."
                )
            elif terminating := _terminating_queue(case, name):
                yield (
                    f'Queue "{terminating}" is being deleted, and removed once nothing is'
                    " charged to it: use another queue."
                )


class QueueNotAllowed(Rule):
    """The pod's namespace may use its queue, and the queues that users wrote on its claims.

    An owner that a user wrote is judged again, even if the webhook admitted the claim. A later
    change of `labelAtCreate` has no effect on claims in use.
    """

    reason = Reason.QUEUE_NOT_ALLOWED
    meaning = (
        "The pod's namespace may not use its queue. Or a claim that a user labelled names a queue"
        " that does not admit the claim's namespace, or does not allow users to name it"
        " (`labelAtCreate`) when its first pod is judged."
    )

    def refusals(self, case: Case) -> Iterator[str]:
        if not case.world.facts.may_use(case.pod, case.queue):
            namespace = case.pod.namespace
            yield (
                f'{case.what} needs a queue, and namespace "{namespace}" may not use queue'
                f' "{case.queue}". {_why_not_admitted(case, case.queue)}'
            )
        for use in case.claims:
            if use.is_users:
                yield from _label_refusals(case, use)

    def why_satisfied(self, case: Case) -> str:
        return f'Namespace "{case.pod.namespace}" may use queue "{case.queue}".'

    def remedies(self, case: Case, may_name: MayName) -> Iterator[str]:
        facts, namespace = case.world.facts, case.pod.namespace
        named = [case.queue, *(use.owner for use in case.claims if use.is_users)]
        for name in dict.fromkeys(named):
            if name in facts.tree and not facts.may_use(case.pod, name):
                why = _why_not_admitted(case, name)
                yield f'Let namespace "{namespace}" use queue "{name}": {why}'
        for use in case.claims:
            if use.is_users and use.adds:
                yield (
                    f"Or create {use.claim} again without its label: then the queue of the pod that"
                    " is admitted first pays."
                )
        yield "Or use a queue that this namespace may use."


def _terminating_queue(case: Case, queue: QueueName) -> QueueName | None:
    """The terminating one of a queue and its ancestors; None for none."""
    tree = case.world.facts.tree
    for place in tree.path(queue):
        found = tree.get(place)
        if found is not None and found.is_deleting:
            return place
    return None


def _takes_nothing(terminating: QueueName, queue: QueueName) -> str:
    above = f', which is above queue "{queue}",' if terminating != queue else ""
    return f'queue "{terminating}"{above} is being deleted and takes no new charge'


def _label_refusals(case: Case, use: ClaimUse) -> Iterator[str]:
    facts, claim, owner = case.world.facts, use.claim, use.owner
    if not facts.may_use(case.pod, owner):
        yield (
            f'{claim} is labelled with queue "{owner}", which namespace "{claim.namespace}" may not'
            f" use. {_why_not_admitted(case, owner)}"
        )
    if use.adds and facts.tree.sharing(owner).label_at_create is SharingPolicy.DENY:
        yield (
            f'{claim} is labelled with queue "{owner}", which may not be named on a new claim'
            " (labelAtCreate: Deny). Make the claim without the label."
        )


def _why_not_admitted(case: Case, name: QueueName) -> str:
    queue = case.world.facts.tree.get(name)
    return why_not_admitted(queue, case.pod.namespace) if queue is not None else ""
