"""What a pod needs of a node, and what a bound pod takes of its node."""

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
    """What a pod needs of a node.

    Attributes:
        requests: Its effective requests in thousandths.
        labels: Labels that the node must have.
        selections: Selectors that must all match: its affinity, and the nodes of its allocated
            claims.
        has_more: Whether it has constraints that only kube-scheduler checks: volumes, affinity to
            pods, topology spread, host ports.
    """

    requests: Thousandths
    labels: Mapping[str, str]
    selections: tuple[NodeTerms, ...]
    tolerations: tuple[Toleration, ...]
    has_more: bool = False

    @property
    def names(self) -> frozenset[str]:
        """The nodes that it names."""
        host = self.labels.get(HOSTNAME_LABEL, "")
        return frozenset((host,)).union(*(terms.names for terms in self.selections))

    def __hash__(self) -> int:
        # Mappings are not hashable.
        asked, labels = frozenset(self.requests.items()), frozenset(self.labels.items())
        return hash((asked, labels, self.selections, self.tolerations))


class PodOnNode(NamedTuple):
    """What a bound pod that has not ended takes of its node.

    Attributes:
        asked: Its effective requests in thousandths.
        is_terminating: Whether it is terminating; until it is deleted it takes what it requested.
    """

    uid: PodUid
    node: str
    asked: Thousandths
    is_terminating: bool = False


@lru_cache(MOST_REMEMBERED)
def needs_of(
    written: WrittenRequests,
    labels: tuple[tuple[str, str], ...],
    affinity: Affinity | None,
    tolerations: tuple[Toleration, ...],
    has_more: bool,
) -> PodNeeds:
    """What a pod needs; pods with the same needs share one object."""
    of_nodes = affinity.node_affinity if affinity is not None else None
    selector = of_nodes.required_during_scheduling_ignored_during_execution if of_nodes else None
    return PodNeeds(
        requests=asked_of_node(written),
        labels=dict(labels),
        selections=() if selector is None else (selected_nodes(selector),),
        tolerations=tolerations,
        has_more=has_more,
    )
