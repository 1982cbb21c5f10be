"""With which queues a queue shares its claims, and which namespaces may use it."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta

from scheduler_plugin.objects.names import (
    NAMESPACE_NAME_LABEL,
    OnOwnerExit,
    Queue,
    QueueName,
    SharingPolicy,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class EffectiveSharing:
    """`spec.claimSharing` of a queue with inherited fields; the defaults are those of a root."""

    policy: SharingPolicy = SharingPolicy.ALLOW
    queues: tuple[QueueName, ...] = ()
    on_owner_exit: OnOwnerExit = OnOwnerExit.KEEP
    owner_exit_grace_period: timedelta = timedelta(minutes=5)
    evict_foreign: SharingPolicy = SharingPolicy.ALLOW
    label_at_create: SharingPolicy = SharingPolicy.ALLOW


def why_not_admitted(queue: Queue, namespace: str) -> str:
    """Why a namespace may not use a queue, and what the queue's spec must say, as a sentence."""
    path = "spec.namespaceSelector"
    if queue.namespaces is not None:
        return f"Its {path} does not select that namespace."
    this_one = f"{{matchLabels: {{{NAMESPACE_NAME_LABEL}: {namespace}}}}}"
    return (
        f"It has no {path}, so no namespace may use it. {path}: {{}} allows all namespaces,"
        f" {path}: {this_one} allows this one."
    )
