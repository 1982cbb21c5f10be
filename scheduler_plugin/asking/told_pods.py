"""What a pod's own conditions and claims tell, where no verdict is made.

So it is for a user that may read one namespace: a verdict rests on queues and pods of others.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from kube.shapes.reading import JsonObject
from scheduler_plugin.asking.shown import told_by
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
    """Of a pod that only Events tell of."""
    sentence = "It does not exist any more; what is left of it are Events."
    return Why(pod=pod, reason=GONE, sentence=sentence, queue=NO_QUEUE, claims=())


def not_accounted(pod: str) -> Why:
    """Of a pod that has nothing to do with queues."""
    return Why(pod=pod, reason=NOT_ACCOUNTED, sentence=NEEDS_NOTHING, queue=NO_QUEUE, claims=())


def told_why(
    pod: JsonObject, claims: Sequence[JsonObject] | None, settings: AccountingSettings
) -> Why:
    """What is told of a pod; None for claims that may not be read."""
    metadata = pod["metadata"]
    reason, sentence = _reason(pod)
    return Why(
        pod=f"{metadata['namespace']}/{metadata['name']}",
        reason=reason,
        sentence=sentence,
        queue=_queue(metadata, settings),
        claims=tuple(_claims(pod, claims, settings)),
        told=told_by(pod),
    )


def _queue(metadata: Mapping[str, JsonObject], settings: AccountingSettings) -> QueueName:
    """That of its binding or label; that of its PodGroup or namespace is not looked up."""
    bound = (metadata.get("annotations") or {}).get(QUEUE_ANNOTATION)
    label = (metadata.get("labels") or {}).get(settings.queue_label)
    return QueueName(bound or label or NO_QUEUE)


def _reason(pod: JsonObject) -> tuple[str, str]:
    status, node = pod.get("status") or {}, (pod.get("spec") or {}).get("nodeName")
    if status.get("phase") in ("Succeeded", "Failed"):
        return ENDED, HAS_ENDED
    if node:
        return RUNNING, is_running(node)
    conditions = {c.get("type"): c for c in status.get("conditions") or ()}
    for type_ in (ADMITTED_CONDITION, "PodScheduled"):
        found = conditions.get(type_) or {}
        if found.get("status") == "False" and found.get("message"):
            return found.get("reason") or NOT_JUDGED, found["message"]
    return NOT_JUDGED, "No condition of it says what it waits for."


def _claims(
    pod: JsonObject, claims: Sequence[JsonObject] | None, settings: AccountingSettings
) -> Iterator[str]:
    namespace = pod["metadata"]["namespace"]
    found = {claim["metadata"]["name"]: claim for claim in claims or ()}
    for name in _claim_names(pod):
        said = f"ResourceClaim {namespace}/{name}"
        if claims is None:
            yield f"{said} is not read."
        elif name not in found:
            yield f"{said} does not exist."
        else:
            yield f"{said} {_state(found[name], settings)}"


def _claim_names(pod: JsonObject) -> Iterator[str]:
    """Of claims that are named, and of those that were made of templates."""
    for entry in (pod.get("spec") or {}).get("resourceClaims") or ():
        if entry.get("resourceClaimName"):
            yield entry["resourceClaimName"]
    for entry in (pod.get("status") or {}).get("resourceClaimStatuses") or ():
        if entry.get("resourceClaimName"):
            yield entry["resourceClaimName"]


def _state(claim: JsonObject, settings: AccountingSettings) -> str:
    allocated = "allocated" if (claim.get("status") or {}).get("allocation") else "not allocated"
    owner = (claim["metadata"].get("labels") or {}).get(settings.queue_label)
    return f"is {allocated}, and its label names {f'queue {owner}' if owner else 'no queue'}."
