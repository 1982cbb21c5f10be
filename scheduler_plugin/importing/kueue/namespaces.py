"""Who may use a ClusterQueue: the namespaces of its LocalQueues that its selector selects.

Pods of Kueue name a LocalQueue of their namespace. Pods of Moorage name the Queue itself, or their
namespace does for all of them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from scheduler_plugin.importing.drafts import Key
from scheduler_plugin.importing.findings import Finding
from scheduler_plugin.importing.foreign import ForeignSelector
from scheduler_plugin.importing.kueue.kueue_models import ClusterQueue, LocalQueue
from scheduler_plugin.objects.names import QUEUE_LABEL

NAME_LABEL = "kubernetes.io/metadata.name"
MOST = 1000
"""The largest number of values of a requirement."""

NO_CLUSTER_QUEUE = "Its ClusterQueue is not in the input."
NO_NAMESPACE = "Its ClusterQueue has no namespaceSelector, so no namespace may use it."


def namespaces_of(queues: Iterable[LocalQueue]) -> Mapping[str, list[str]]:
    """The namespaces of the LocalQueues of each ClusterQueue."""
    found: dict[str, set[str]] = {}
    for queue in queues:
        if queue.spec and (name := queue.spec.cluster_queue):
            found.setdefault(name, set()).add(queue.metadata.namespace)
    return {name: sorted(each) for name, each in found.items()}


def selector_of(queue: ClusterQueue, namespaces: list[str]) -> dict[str, Any] | None:
    """The selector that selects what Kueue does; without LocalQueues it is the queue's own."""
    selector = queue.spec and queue.spec.namespace_selector
    if selector is None:
        return None
    found = selector.model_dump(by_alias=True, exclude_none=True, include=_FIELDS)
    if not namespaces or len(namespaces) > MOST:
        return found
    only = {"key": NAME_LABEL, "operator": "In", "values": namespaces}
    return {**found, "matchExpressions": [*found.get("matchExpressions", ()), only]}


_FIELDS = set(ForeignSelector.model_fields)


def too_many(queue: ClusterQueue, namespaces: list[str]) -> Iterator[Finding]:
    """A finding if the namespaces do not fit into a selector."""
    if len(namespaces) > MOST:
        sentence = (
            f"It has LocalQueues in {len(namespaces)} namespaces, and the Queue selects more."
        )
        yield Finding(queue.about, ("spec.namespaceSelector",), sentence)


def local_queue_findings(
    queue: LocalQueue, cluster_queues: Mapping[str, ClusterQueue], names: Mapping[Key, str]
) -> Iterator[Finding]:
    """What of a LocalQueue a Queue cannot say: its name, above all."""
    name = (queue.spec and queue.spec.cluster_queue) or ""
    used = cluster_queues.get(name)
    if used is None:
        yield Finding(queue.about, ("spec.clusterQueue",), NO_CLUSTER_QUEUE)
        return
    if not (used.spec and used.spec.namespace_selector is not None):
        yield Finding(queue.about, ("spec.clusterQueue",), NO_NAMESPACE)
    written = names[Key("ClusterQueue", name)]
    if queue.name != written:
        sentence = (
            f"Pods name the Queue itself, by the label {QUEUE_LABEL}: {written}, or their namespace"
            f" does: kubectl label namespace {queue.metadata.namespace} {QUEUE_LABEL}={written}"
        )
        yield Finding(queue.about, ("metadata.name",), sentence)
