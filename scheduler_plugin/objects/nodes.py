"""Nodes: which pods may be bound to a node, and its allocatable resources."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from sys import intern

from kube.shapes.nodes import NO_SPEC, NO_STATUS, Node, Spec, Status
from kube.shapes.reading import JsonObject, read_as
from kube.shapes.selection import Taint
from scheduler_plugin.objects.node_requests import NOTHING, Thousandths, amounts
from scheduler_plugin.objects.node_selection import NodeTerms, untolerated
from scheduler_plugin.objects.pod_needs import PodNeeds

READY = "Ready"


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeView:
    """A Node, without what heartbeats and images change.

    Attributes:
        closed: Why no pod may be bound to it, as a part of a sentence; "" if pods may.
        allocatable: Its allocatable resources in thousandths.
    """

    name: str
    labels: Mapping[str, str]
    taints: tuple[Taint, ...] = ()
    closed: str = ""
    allocatable: Thousandths = field(default_factory=lambda: NOTHING)

    def why_not(self, needs: PodNeeds, also: Iterable[NodeTerms] = ()) -> str:
        """Why the node is unsuitable for a pod even if it is empty, as a part of a sentence.

        "" if it is suitable. Free resources are checked by `Nodes`.

        Args:
            needs: What the pod needs.
            also: The nodes that can use its allocated claims.
        """
        if self.closed:
            return self.closed
        if any(self.labels.get(key) != value for key, value in needs.labels.items()):
            return "is not one that its nodeSelector selects"
        selections = (*needs.selections, *also)
        if not all(terms.match(self.name, self.labels) for terms in selections):
            return "is not one that its affinity, or its other claims, allow"
        if taint := untolerated(self.taints, needs.tolerations):
            return f'has the taint "{taint}", which it does not tolerate'
        return ""


def node_view(obj: JsonObject | Node) -> NodeView:
    """Parse a Node; raises UnreadableError."""
    node = read_as(Node, obj)
    spec, status = node.spec or NO_SPEC, node.status or NO_STATUS
    return NodeView(
        name=intern(node.metadata.name),
        # Interned, since thousands of nodes have the same labels and values.
        labels={intern(k): intern(v) for k, v in (node.metadata.labels or {}).items()},
        taints=_interned(spec.taints or ()),
        closed=_closed(spec, status, is_deleting=node.metadata.deletion_timestamp is not None),
        allocatable=amounts(status.allocatable or {}),
    )


def _closed(spec: Spec, status: Status, *, is_deleting: bool) -> str:
    if is_deleting:
        return "is being deleted"
    if spec.unschedulable:
        return "takes no pods"
    ready = (each.status for each in status.conditions or () if each.type == READY)
    return "" if next(ready, None) == "True" else "is not ready"


@lru_cache(1024)
def _interned(taints: tuple[Taint, ...]) -> tuple[Taint, ...]:
    return taints
