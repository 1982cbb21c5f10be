"""New ResourceClaims and ResourceClaimTemplates: the queue that they name, what they ask.

Who may write the label later, and the annotations that only the binder writes, are policies.
"""

from __future__ import annotations

from driver.api import Problem
from scheduler_plugin.api import NamespaceView, QueueName
from webhook.findings import Findings, refused
from webhook.reviews import Review
from webhook.rules import device_configs
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
    path = label_path("metadata", key)
    problems = _label_problems(claim_queue(review, key), path, namespace, around)
    return refused((*problems, *device_configs.config_problems(review, device_configs.CLAIM)))


def judge_template(review: Review, namespace: NamespaceView, around: Surroundings) -> Findings:
    """Judge the CREATE of a ResourceClaimTemplate."""
    key = around.settings.queue_label
    path = label_path("spec.metadata", key)
    problems = _label_problems(template_queue(review, key), path, namespace, around)
    return refused((*problems, *device_configs.config_problems(review, device_configs.TEMPLATE)))


def _label_problems(
    queue: QueueName | None, path: str, namespace: NamespaceView, around: Surroundings
) -> tuple[Problem, ...]:
    if queue is None:
        return ()
    problems = label_problems(queue, path, namespace, around)
    return (*problems, *creation_problems(queue, path, around))
