"""New pods of namespaces that opted in: what they lack to wait for quota and be charged for it.

    spec.schedulerName     the scheduler that accounts, where the pod has the default one
    spec.schedulingGates   the gate at which it waits until its queue has room
    metadata.labels        its namespace's queue, which stays the pod's whatever becomes of that

The API server asks only about namespaces with the label `moorage.dev/managed`, and afterwards
about the result, as about any pod. Nothing here makes a pod refusable that was not before.

What does not exist yet (a claim, a template, a class, a Configuration) counts as accounted: were
it to come to that, another scheduler would place the pod uncharged. A gate costs little, and the
scheduler plugin takes it away once what the pod asks for proves to be nobody's business.

A pod whose node is chosen is left alone, mirrors of static pods too: no scheduler will see it, and
the API server takes no gate on it. So is a pod of another scheduler: somebody chose that. Pods of
DaemonSets are pods as others: they wait, their nodes come from affinity.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from driver.api import AKRI_GROUP
from scheduler_plugin.api import QUOTA_GATE, ClaimTemplateView, NamespaceView, QueueName
from webhook.reviews import Edit, Review, part
from webhook.rules.pods import FoundClaim, NewPod, accounted_uses
from webhook.rules.queue_labels import label_problems
from webhook.rules.surroundings import Hold, Surroundings

DEFAULT_SCHEDULER = "default-scheduler"
"""What the API server writes where a user says nothing."""

_LEGACY_PREFIX = f"{AKRI_GROUP}/"


def is_ours(pod: NewPod, around: Surroundings) -> bool:
    """Whether the pod goes to a scheduler of ours, or nobody said where it goes."""
    if pod.view.node or pod.is_mirror:
        return False
    return pod.scheduler_name in ("", DEFAULT_SCHEDULER, *around.pods.scheduler_names)


def namespace_queue(namespace: NamespaceView, around: Surroundings) -> QueueName:
    """The queue that a namespace is labelled with; "" for none."""
    return QueueName(namespace.labels.get(around.settings.queue_label, ""))


def edits(
    review: Review,
    pod: NewPod,
    claims: Sequence[FoundClaim],
    namespace: NamespaceView,
    around: Surroundings,
) -> Iterator[Edit]:
    """What to change of a pod; nothing of one that has all of it, or asks for nothing accounted.

    Args:
        review: Of the pod's CREATE.
        pod: The same pod, read; for which `is_ours`.
        claims: What its `spec.resourceClaims` name, in that order.
        namespace: The pod's namespace.
        around: What is known of the cluster.
    """
    if not may_be_accounted(pod, claims, around):
        return
    if pod.scheduler_name not in around.pods.scheduler_names:
        yield Edit("spec.schedulerName", around.pods.scheduler_names[0])
    if around.pods.hold is Hold.GATE and QUOTA_GATE not in pod.view.gates:
        gates = part(review.new, "spec", "schedulingGates")
        yield Edit("spec.schedulingGates", [*gates, {"name": QUOTA_GATE}])
    if queue := _label(pod, namespace, around):
        labels = part(review.new, "metadata", "labels")
        yield Edit("metadata.labels", {**labels, around.settings.queue_label: queue})


def may_be_accounted(pod: NewPod, claims: Sequence[FoundClaim], around: Surroundings) -> bool:
    """Whether the pod asks for something accounted, or for something that may come to be."""
    return (
        bool(accounted_uses(pod, claims, around))
        or any(_may_come(claim, around) for claim in claims)
        or any(_resource_may_come(name, around) for name, _ in pod.view.requests)
    )


def _may_come(claim: FoundClaim, around: Surroundings) -> bool:
    if claim is None:
        return True
    known = claim.claim("", "") if isinstance(claim, ClaimTemplateView) else claim
    return any(around.catalog.class_named(name) is None for name in known.classes)


def _resource_may_come(resource: str, around: Surroundings) -> bool:
    """Of other names than these two nobody can tell that a class will ever stand behind them."""
    catalog = around.catalog
    device_class = catalog.resource_class(resource)
    if device_class is not None:
        return catalog.class_named(device_class) is None
    name = resource.removeprefix(_LEGACY_PREFIX)
    return name != resource and not around.exists(name) and catalog.instance_named(name) is None


def _label(pod: NewPod, namespace: NamespaceView, around: Surroundings) -> QueueName | None:
    """A pod's own label wins over its PodGroup's queue, so one with a group gets none.

    Nor does it get the name of a queue that it could be refused for: without it the pod waits,
    and says why, until the queue is there and admits its namespace.
    """
    queue = namespace_queue(namespace, around)
    if pod.queue is not None or pod.view.group or not queue:
        return None
    return None if any(label_problems(queue, "", namespace, around)) else queue
