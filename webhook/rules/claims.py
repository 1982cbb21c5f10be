"""New ResourceClaims and ResourceClaimTemplates: the queue that a user names on them.

Who may write the label later, and the annotations that only the binder writes, are policies.
"""

from __future__ import annotations

from scheduler_plugin.api import NamespaceView, QueueName
from webhook.findings import NOTHING_FOUND, Findings, refused
from webhook.reviews import Review
from webhook.rules.queue_labels import creation_problems, label_path, label_problems, queue_label
from webhook.rules.surroundings import Surroundings


def claim_queue(review: Review, key: str) -> QueueName | None:
    """The queue that a new claim is labelled with; None for no label."""
    return queue_label((review.new or {}).get("metadata"), key)


def template_queue(review: Review, key: str) -> QueueName | None:
    """The queue that claims made of a template are labelled with.

    Labels of the template itself are on no claim and mean nothing.
    """
    return queue_label(((review.new or {}).get("spec") or {}).get("metadata"), key)


def judge_claim(review: Review, namespace: NamespaceView, around: Surroundings) -> Findings:
    """Judge the CREATE of a ResourceClaim."""
    key = around.settings.queue_label
    return _judge(claim_queue(review, key), label_path("metadata", key), namespace, around)


def judge_template(review: Review, namespace: NamespaceView, around: Surroundings) -> Findings:
    """Judge the CREATE of a ResourceClaimTemplate."""
    key = around.settings.queue_label
    path = label_path("spec.metadata", key)
    return _judge(template_queue(review, key), path, namespace, around)


def _judge(
    queue: QueueName | None, path: str, namespace: NamespaceView, around: Surroundings
) -> Findings:
    if queue is None:
        return NOTHING_FOUND
    problems = label_problems(queue, path, namespace, around)
    return refused((*problems, *creation_problems(queue, path, around)))
