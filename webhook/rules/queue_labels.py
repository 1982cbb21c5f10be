"""Rules for the queue label of new objects: which queue a namespace may name."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from driver.api import Problem
from scheduler_plugin.accounting.api import why_not_admitted
from scheduler_plugin.objects.api import NamespaceView
from scheduler_plugin.objects.names import QueueName, SharingPolicy
from webhook.reviews import part
from webhook.rules.rule_context import RuleContext


def queue_label(metadata: Mapping[str, Any], key: str) -> QueueName | None:
    """The value of the label; None if there is none."""
    value = part(metadata, "labels").get(key)
    return None if value is None else QueueName(value)


def label_path(metadata_path: str, key: str) -> str:
    return f"{metadata_path}.labels[{key}]"


def label_problems(
    queue: QueueName, path: str, namespace: NamespaceView, context: RuleContext
) -> Iterator[Problem]:
    """Why a pod or a claim of the namespace may not name the queue."""
    found = context.tree.get(queue)
    if not queue:
        yield Problem(path, "The label is empty. Name a queue, or remove the label.")
    elif found is None:
        yield Problem(path, f'Queue "{queue}" does not exist. Create it, or name another queue.')
    elif not found.admits(namespace.labels):
        sentence = f'Namespace "{namespace.name}" may not use queue "{queue}".'
        yield Problem(path, f"{sentence} {why_not_admitted(found, namespace.name)}")


def creation_problems(queue: QueueName, path: str, context: RuleContext) -> Iterator[Problem]:
    """Why a user may not name the queue on a new claim, which the queue then owns."""
    if queue not in context.tree:
        return
    if context.tree.sharing(queue).label_at_create is SharingPolicy.DENY:
        sentence = f'Queue "{queue}" may not be named on a new claim (labelAtCreate: Deny).'
        mend = "Remove the label: the queue of the first pod that uses the claim becomes its owner."
        yield Problem(path, f"{sentence} {mend}")
