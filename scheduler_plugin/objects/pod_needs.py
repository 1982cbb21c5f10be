"""What decides on which nodes a pod fits, and what it takes of the node that it is on."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import NamedTuple

from kube.shapes.selection import Affinity, Toleration
from scheduler_plugin.objects.names import PodUid
from scheduler_plugin.objects.node_requests import (
    MOST_REMEMBERED,
    Thousandths,
    WrittenRequests,
    asked_of_node,
)
from scheduler_plugin.objects.node_selection import HOSTNAME_LABEL, NodeTerms, selected_nodes


@dataclass(frozen=True, slots=True, kw_only=True)
class PodNeeds:
    """What a pod asks of a node.

    Attributes:
        requests: By resource, in thousandths.
        labels: Labels that the node must have.
        selections: Each must match: its affinity, and where claims of it are allocated already.
        has_more: Whether it asks for what is not looked at, and only kube-scheduler knows of:
            volumes, the company of other pods, spread, ports of the node.
    """

    requests: Thousandths
    labels: Mapping[str, str]
    selections: tuple[NodeTerms, ...]
    tolerations: tuple[Toleration, ...]
    has_more: bool = False

    @property
    def names(self) -> frozenset[str]:
        """Nodes that it names."""
        host = self.labels.get(HOSTNAME_LABEL, "")
        return frozenset((host,)).union(*(terms.names for terms in self.selections))

    def __hash__(self) -> int:
        # What is a mapping has none of its own.
        asked, labels = frozenset(self.requests.items()), frozenset(self.labels.items())
        return hash((asked, labels, self.selections, self.tolerations))


class PodOnNode(NamedTuple):
    """What a pod that is bound, and has not ended, takes of its node.

    Attributes:
        asked: By resource, in thousandths.
        is_leaving: Whether it is being deleted; until it is gone it takes what it asked for.
    """

    uid: PodUid
    node: str
    asked: Thousandths
    is_leaving: bool = False


@lru_cache(MOST_REMEMBERED)
def needs_of(
    written: WrittenRequests,
    labels: tuple[tuple[str, str], ...],
    affinity: Affinity | None,
    tolerations: tuple[Toleration, ...],
    has_more: bool,
) -> PodNeeds:
    """What a pod needs; pods that need the same share one object."""
    of_nodes = affinity.node_affinity if affinity is not None else None
    selector = of_nodes.required_during_scheduling_ignored_during_execution if of_nodes else None
    return PodNeeds(
        requests=asked_of_node(written),
        labels=dict(labels),
        selections=() if selector is None else (selected_nodes(selector),),
        tolerations=tolerations,
        has_more=has_more,
    )
