"""Rules for new ResourceClaims and ResourceClaimTemplates: queue label, and opaque parameters.

Admission policies protect later writes of the label, and the annotations that only the binder
writes.
"""

from __future__ import annotations

from scheduler_plugin.objects.api import NamespaceView
from scheduler_plugin.objects.names import QueueName
from webhook.findings import Findings, refused
from webhook.reviews import Review, part
from webhook.rules.device_configs import config_problems
from webhook.rules.queue_labels import creation_problems, label_path, label_problems, queue_label
from webhook.rules.rule_context import RuleContext

METADATA = {"ResourceClaim": ("metadata",), "ResourceClaimTemplate": ("spec", "metadata")}
"""Path of the metadata of claims: labels of a template itself do not reach its claims."""


def claim_queue(review: Review, key: str) -> QueueName | None:
    """The queue label of a claim, or of the claims of a template; None for no label."""
    return queue_label(part(review.new, *METADATA[review.kind.kind]), key)


def judge_claim(review: Review, namespace: NamespaceView, context: RuleContext) -> Findings:
    """Judge the CREATE of a ResourceClaim or of a ResourceClaimTemplate."""
    key = context.settings.queue_label
    queue, problems = claim_queue(review, key), list(config_problems(review))
    if queue is None:
        return refused(problems)
    path = label_path(".".join(METADATA[review.kind.kind]), key)
    named = label_problems(queue, path, namespace, context)
    return refused((*named, *creation_problems(queue, path, context), *problems))
