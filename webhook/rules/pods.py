"""Rules for new pods: no pod may use accounted devices without a scheduler that accounts.

A pod that asks for nothing accounted is never refused. A claim that does not exist yet may turn out
to be accounted: kube-scheduler and the scheduler plugin handle it then. `labelAtCreate` does not
restrict the queue label of pods: it is about the owner of a claim, and a pod pays only for its own
use.

An administrator may allow other schedulers. Their pods are charged only once they run: the claims
of such a pod are orphans, and no limit holds for them.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from driver.api import Problem
from scheduler_plugin.accounting.api import is_accounted
from scheduler_plugin.objects.api import (
    ClaimTemplateView,
    ClaimView,
    NamespaceView,
    PodView,
    pod_view,
)
from scheduler_plugin.objects.names import AccountingSettings, QueueName
from webhook.findings import Findings, listed
from webhook.reviews import Review, part
from webhook.rules.queue_labels import label_path, label_problems, queue_label
from webhook.rules.rule_context import OtherSchedulers, RuleContext

MIRROR_ANNOTATION = "kubernetes.io/config.mirror"
NODES_GROUP = "system:nodes"

FoundClaim = ClaimView | ClaimTemplateView | None
"""The object of an entry of `spec.resourceClaims`; None if it does not exist."""


@dataclass(frozen=True, slots=True)
class NewPod:
    """A pod that is being created.

    Attributes:
        queue: The pod's queue label; None for none.
        is_mirror: Whether it is a kubelet's mirror of a static pod, which runs in any case.
    """

    view: PodView
    queue: QueueName | None
    scheduler_name: str
    is_mirror: bool


def new_pod(review: Review, settings: AccountingSettings) -> NewPod:
    """The pod of a CREATE, without its status, which the API server clears."""
    body = review.new or {}
    metadata = part(body, "metadata")
    is_mirror = MIRROR_ANNOTATION in part(metadata, "annotations")
    # Names and UIDs may be generated after the review; no rule depends on them.
    assumed = {"name": metadata.get("generateName") or "(new)", "uid": review.uid}
    named = {**assumed, "namespace": review.namespace, **metadata}
    view = pod_view({**body, "metadata": named, "status": None}, settings)
    return NewPod(
        view=view,
        queue=queue_label(metadata, settings.queue_label),
        scheduler_name=part(body, "spec", "schedulerName") or "",
        # Other users could set the annotation to bypass the rules.
        is_mirror=is_mirror and NODES_GROUP in review.user.groups,
    )


def judge_pod(
    pod: NewPod, claims: Sequence[FoundClaim], namespace: NamespaceView, context: RuleContext
) -> Findings:
    """Judge the CREATE of a pod.

    Args:
        pod: The pod.
        claims: The claims and templates of `spec.resourceClaims`, in that order.
        namespace: The pod's namespace.
        context: The stored objects of the cluster.
    """
    accounted = accounted_uses(pod, claims, context)
    problems, warnings = _bypasses(pod, accounted, context)
    may_be_accounted = bool(accounted) or None in claims
    if pod.queue is not None and may_be_accounted:
        path = label_path("metadata", context.settings.queue_label)
        problems += label_problems(pod.queue, path, namespace, context)
    if pod.is_mirror:
        note = "It is a static pod and runs in any case, charged to its queue:"
        return Findings(warnings=tuple(f"{note} {problem}" for problem in problems))
    return Findings(tuple(problems), warnings)


def accounted_uses(
    pod: NewPod, claims: Sequence[FoundClaim], context: RuleContext
) -> tuple[str, ...]:
    """The pod's accounted claims and requests, as text for a sentence; see `judge_pod`."""
    key_of = context.catalog.accounted_resource
    resources = (name for name, _ in pod.view.requests if key_of(name) is not None)
    of_requests = (f"resource {name}" for name in resources)
    return (*_accounted_claims(pod.view, claims, context), *of_requests)


def _accounted_claims(
    pod: PodView, claims: Sequence[FoundClaim], context: RuleContext
) -> Iterator[str]:
    for entry, found in zip(pod.claims, claims, strict=True):
        match found:
            case ClaimView() if is_accounted(found, context.catalog):
                yield str(found)
            case ClaimTemplateView() if is_accounted(
                found.claim(pod.name, entry.name), context.catalog
            ):
                yield f"ResourceClaimTemplate {found.namespace}/{found.name}"


def _bypasses(
    pod: NewPod, accounted: Sequence[str], context: RuleContext
) -> tuple[list[Problem], tuple[str, ...]]:
    """Problems and warnings about the node and the scheduler of a pod with accounted uses."""
    if not accounted:
        return [], ()
    problems, what = [], listed(accounted)
    if pod.view.node:
        sentence = f"{what}: uses are charged to queues, so a scheduler must choose the node."
        sentence += " Remove the field."
        problems.append(Problem("spec.nodeName", sentence))
    if pod.scheduler_name in context.pods.scheduler_names:
        return problems, ()
    names = " or ".join(f'"{name}"' for name in sorted(context.pods.scheduler_names))
    sentence = f'{what}: uses are charged to queues, which scheduler "{pod.scheduler_name}"'
    if context.pods.other_schedulers is OtherSchedulers.ALLOW:
        late = f"does not check: the pod is charged only once it runs. Use {names} to check before."
        return problems, (str(Problem("spec.schedulerName", f"{sentence} {late}")),)
    problems.append(Problem("spec.schedulerName", f"{sentence} does not check. Use {names}."))
    return problems, ()
