"""Edits of new pods in namespaces that opted in, so that they wait for quota and are charged.

    spec.schedulerName     the accounting scheduler, if the pod has the default one
    spec.schedulingGates   the gate that holds the pod until its queue has room
    metadata.labels        the namespace's queue; later changes of the namespace do not change it

The API server calls this only for namespaces with the label `moorage.dev/managed`. Validation of
the result follows, as for any pod. No edit makes a pod invalid that was valid before.

A claim, template, class or Configuration that does not exist yet counts as accounted: if it is
accounted later, another scheduler would place the pod without a charge. A gate costs little, and
the scheduler plugin removes it once the pod proves to ask for nothing accounted.

Pods with a node, such as mirrors of static pods, are not changed: no scheduler sees them, and the
API server allows no gate on them. Pods of another scheduler are not changed: a user chose it. Pods
of DaemonSets are changed as others: they wait, and affinity selects their nodes.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from driver.api import AKRI_GROUP
from scheduler_plugin.objects.api import ClaimTemplateView, NamespaceView
from scheduler_plugin.objects.names import QUOTA_GATE, QueueName
from webhook.reviews import Edit, Review, part
from webhook.rules.pods import FoundClaim, NewPod, accounted_uses
from webhook.rules.queue_labels import label_problems
from webhook.rules.rule_context import Hold, RuleContext

DEFAULT_SCHEDULER = "default-scheduler"
"""The API server's default of `spec.schedulerName`."""

_LEGACY_PREFIX = f"{AKRI_GROUP}/"


def is_ours(pod: NewPod, context: RuleContext) -> bool:
    """Whether a scheduler with accounting places the pod, or the user chose no scheduler."""
    if pod.view.node or pod.is_mirror:
        return False
    return pod.scheduler_name in ("", DEFAULT_SCHEDULER, *context.pods.scheduler_names)


def namespace_queue(namespace: NamespaceView, context: RuleContext) -> QueueName:
    """The queue label of a namespace; "" for none."""
    return QueueName(namespace.labels.get(context.settings.queue_label, ""))


def edits(
    review: Review,
    pod: NewPod,
    claims: Sequence[FoundClaim],
    namespace: NamespaceView,
    context: RuleContext,
) -> Iterator[Edit]:
    """Edits of a pod; none if the pod is complete, or asks for nothing accounted.

    Args:
        review: The pod's CREATE.
        pod: The parsed pod; `is_ours` must hold.
        claims: The claims and templates of `spec.resourceClaims`, in that order.
        namespace: The pod's namespace.
        context: The stored objects of the cluster.
    """
    if not may_be_accounted(pod, claims, context):
        return
    if pod.scheduler_name not in context.pods.scheduler_names:
        yield Edit("spec.schedulerName", context.pods.scheduler_names[0])
    if context.pods.hold is Hold.GATE and QUOTA_GATE not in pod.view.gates:
        gates = part(review.new, "spec", "schedulingGates")
        yield Edit("spec.schedulingGates", [*gates, {"name": QUOTA_GATE}])
    if queue := _label(pod, namespace, context):
        labels = part(review.new, "metadata", "labels")
        yield Edit("metadata.labels", {**labels, context.settings.queue_label: queue})


def may_be_accounted(pod: NewPod, claims: Sequence[FoundClaim], context: RuleContext) -> bool:
    """Whether the pod asks for something that is accounted, or may become so."""
    return (
        bool(accounted_uses(pod, claims, context))
        or any(_as_candidate(claim, context) for claim in claims)
        or any(_resource_may_come(name, context) for name, _ in pod.view.requests)
    )


def _as_candidate(claim: FoundClaim, context: RuleContext) -> bool:
    if claim is None:
        return True
    known = claim.claim("", "") if isinstance(claim, ClaimTemplateView) else claim
    return any(context.catalog.class_named(name) is None for name in known.classes)


def _resource_may_come(resource: str, context: RuleContext) -> bool:
    """Whether a DeviceClass or Configuration for the resource may follow, by its name."""
    catalog = context.catalog
    device_class = catalog.resource_class(resource)
    if device_class is not None:
        return catalog.class_named(device_class) is None
    name = resource.removeprefix(_LEGACY_PREFIX)
    return name != resource and not context.exists(name) and catalog.instance_named(name) is None


def _label(pod: NewPod, namespace: NamespaceView, context: RuleContext) -> QueueName | None:
    """The queue for the pod's label; None for none.

    A pod with a PodGroup gets none, since a label would override the group's queue. A pod also gets
    no queue that validation would refuse: without a label it waits, with a reason, until the queue
    exists and admits its namespace.
    """
    queue = namespace_queue(namespace, context)
    if pod.queue is not None or pod.view.group or not queue:
        return None
    return None if any(label_problems(queue, "", namespace, context)) else queue
