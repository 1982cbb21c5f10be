"""The queue label: whom it may name, at creation, in which namespace."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from driver.api import Problem
from scheduler_plugin.api import NamespaceView, QueueName, SharingPolicy, why_not_admitted
from webhook.reviews import part
from webhook.rules.surroundings import Surroundings


def queue_label(metadata: Mapping[str, Any], key: str) -> QueueName | None:
    """What the label says; None where there is none."""
    value = part(metadata, "labels").get(key)
    return None if value is None else QueueName(value)


def label_path(metadata_path: str, key: str) -> str:
    return f"{metadata_path}.labels[{key}]"


def label_problems(
    queue: QueueName, path: str, namespace: NamespaceView, around: Surroundings
) -> Iterator[Problem]:
    """What speaks against naming the queue, on a pod or a claim of the namespace."""
    found = around.tree.get(queue)
    if not queue:
        yield Problem(path, "It is empty and names no queue; leave it out.")
    elif found is None:
        yield Problem(path, f'Queue "{queue}" does not exist.')
    elif not found.admits(namespace.labels):
        sentence = f'Namespace "{namespace.name}" may not use queue "{queue}".'
        yield Problem(path, f"{sentence} {why_not_admitted(found, namespace.name)}")


def creation_problems(queue: QueueName, path: str, around: Surroundings) -> Iterator[Problem]:
    """What speaks against a user's naming the queue on a claim, which it then pays for."""
    if queue not in around.tree:
        return
    if around.tree.sharing(queue).label_at_create is SharingPolicy.DENY:
        sentence = f'Queue "{queue}" may not be named on a new claim (labelAtCreate: Deny).'
        yield Problem(path, f"{sentence} The queue of the first pod that uses it becomes its own.")
