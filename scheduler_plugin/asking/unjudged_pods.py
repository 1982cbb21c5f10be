"""What a pod's own conditions and claims say, without a verdict.

It is for users who may read one namespace: a verdict depends on queues and on pods of others.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from kube.shapes.claims import Claim
from kube.shapes.metadata import NO_METADATA, Metadata
from kube.shapes.pods import NO_SPEC, NO_STATUS, Pod
from kube.shapes.reading import JsonObject, read_as
from scheduler_plugin.asking.shown import condition_lines
from scheduler_plugin.objects.names import (
    ADMITTED_CONDITION,
    NO_QUEUE,
    QUEUE_ANNOTATION,
    AccountingSettings,
    QueueName,
)
from scheduler_plugin.viewing.why import ENDED, HAS_ENDED, NEEDS_NOTHING, RUNNING, Why, is_running

GONE, NOT_ACCOUNTED, NOT_JUDGED = "Gone", "NotAccounted", "NotJudged"


def gone(pod: str) -> Why:
    """The answer for a deleted pod that has only Events left."""
    sentence = "The pod does not exist any more; only its Events are left."
    return Why(pod=pod, reason=GONE, sentence=sentence, queue=NO_QUEUE, claims=())


def not_accounted(pod: str) -> Why:
    """The answer for a pod that has nothing to do with queues."""
    return Why(pod=pod, reason=NOT_ACCOUNTED, sentence=NEEDS_NOTHING, queue=NO_QUEUE, claims=())


def unjudged_why(
    obj: JsonObject, claims: Sequence[JsonObject] | None, settings: AccountingSettings
) -> Why:
    """The answer from a pod's conditions; `claims` is None if they may not be read."""
    pod = read_as(Pod, obj)
    reason, sentence = _reason(pod)
    return Why(
        pod=f"{pod.metadata.namespace}/{pod.metadata.name}",
        reason=reason,
        sentence=sentence,
        queue=_queue(pod.metadata, settings),
        claims=tuple(_claims(pod, claims, settings)),
        told=condition_lines(pod),
    )


def _queue(metadata: Metadata, settings: AccountingSettings) -> QueueName:
    """The queue of the pod's binding or label; PodGroup and namespace are not looked up."""
    bound = (metadata.annotations or {}).get(QUEUE_ANNOTATION)
    label = (metadata.labels or {}).get(settings.queue_label)
    return QueueName(bound or label or NO_QUEUE)


def _reason(pod: Pod) -> tuple[str, str]:
    if pod.has_ended:
        return ENDED, HAS_ENDED
    if node := (pod.spec or NO_SPEC).node_name:
        return RUNNING, is_running(node)
    conditions = {each.type: each for each in (pod.status or NO_STATUS).conditions or ()}
    for type_ in (ADMITTED_CONDITION, "PodScheduled"):
        found = conditions.get(type_)
        if found is not None and found.status == "False" and found.message:
            return found.reason or NOT_JUDGED, found.message
    return NOT_JUDGED, "No condition of the pod says what it waits for."


def _claims(
    pod: Pod, claims: Sequence[JsonObject] | None, settings: AccountingSettings
) -> Iterator[str]:
    shapes = [read_as(Claim, obj) for obj in claims or ()]
    found = {(claim.metadata or NO_METADATA).name: claim for claim in shapes}
    for name in pod.claim_names:
        said = f"ResourceClaim {pod.metadata.namespace}/{name}"
        if claims is None:
            yield f"{said} was not read."
        elif name not in found:
            yield f"{said} does not exist."
        else:
            yield f"{said} {_state(found[name], settings)}"


def _state(claim: Claim, settings: AccountingSettings) -> str:
    allocated = "allocated" if claim.is_allocated else "not allocated"
    owner = ((claim.metadata or NO_METADATA).labels or {}).get(settings.queue_label)
    return f"is {allocated}, and its label names {f'queue {owner}' if owner else 'no queue'}."
