"""New ResourceClaims and ResourceClaimTemplates: the queue that they name, what they ask.

Who may write the label later, and the annotations that only the binder writes, are policies.
"""

from __future__ import annotations

from scheduler_plugin.api import NamespaceView, QueueName
from webhook.findings import Findings, refused
from webhook.reviews import Review, part
from webhook.rules.device_configs import config_problems
from webhook.rules.queue_labels import creation_problems, label_path, label_problems, queue_label
from webhook.rules.surroundings import Surroundings

METADATA = {"ResourceClaim": ("metadata",), "ResourceClaimTemplate": ("spec", "metadata")}
"""Of the claims: labels of a template itself are on no claim and mean nothing."""


def claim_queue(review: Review, key: str) -> QueueName | None:
    """The queue that a claim, or those made of a template, are labelled with; None for no label."""
    return queue_label(part(review.new, *METADATA[review.kind.kind]), key)


def judge_claim(review: Review, namespace: NamespaceView, around: Surroundings) -> Findings:
    """Judge the CREATE of a ResourceClaim or of a ResourceClaimTemplate."""
    key = around.settings.queue_label
    queue, problems = claim_queue(review, key), list(config_problems(review))
    if queue is None:
        return refused(problems)
    path = label_path(".".join(METADATA[review.kind.kind]), key)
    named = label_problems(queue, path, namespace, around)
    return refused((*named, *creation_problems(queue, path, around), *problems))
