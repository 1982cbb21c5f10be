"""What has to be read before a device is taken from anybody: kept nowhere, read when needed.

pod and its claims ──► what it asks of a node, and of a device
slices             ──► which devices would do            nodes, pods on them ──► whether it fits
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace
from types import MappingProxyType

from scheduler_plugin.objects.claims import DeviceId
from scheduler_plugin.objects.names import PodUid
from scheduler_plugin.reclaiming.node_room import NodeRoom, PodNeeds
from scheduler_plugin.reclaiming.offers import DeviceRequest, Offer

MOST_NODES = 8
"""Of how many nodes it is read for one pod what there is room for."""


@dataclass(frozen=True, slots=True)
class Unread:
    """Nodes that have to be looked at before it can be decided."""

    nodes: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Evidence:
    """What is known beyond the world for one pod.

    Attributes:
        nodes: None for a node that is not there.
    """

    needs: PodNeeds
    request: DeviceRequest
    offers: Mapping[DeviceId, Offer]
    nodes: Mapping[str, NodeRoom | None] = field(default_factory=dict)
    accepted: dict[DeviceId, bool] = field(default_factory=dict)

    @property
    def doubt(self) -> str:
        """Why it cannot be said what would serve the pod; "" where it can."""
        return self.request.doubt or self.needs.doubt

    @property
    def kind(self) -> object:
        """Equal for pods that the same devices and nodes serve."""
        return self.request, self.needs

    def accepts(self, device: DeviceId) -> bool:
        """Whether a device would do for certain, were it free. It is asked for once."""
        if device not in self.accepted:
            offer = self.offers.get(device)
            self.accepted[device] = offer is not None and self.request.accepts(offer)
        return self.accepted[device]

    def with_nodes(self, nodes: Mapping[str, NodeRoom | None]) -> Evidence:
        """The same, with more nodes."""
        return replace(self, nodes={**self.nodes, **nodes})

    def nodes_of(self, device: DeviceId, others: Collection[str] = ()) -> tuple[str, ...]:
        """Nodes that may use a device: its own, those it names, else such as others use it on."""
        offer = self.offers[device]
        if offer.node:
            return (offer.node,)
        return tuple(dict.fromkeys((*others, *offer.nodes.names)))

    def unread(self, nodes: Collection[str]) -> tuple[str, ...]:
        """Those of some nodes that are to be read yet, no more than may be."""
        missing = [name for name in nodes if name not in self.nodes]
        return tuple(missing[: max(0, MOST_NODES - len(self.nodes))])

    def may_fit(self, nodes: Collection[str]) -> bool:
        """Whether some of the nodes were not looked at, since there are too many."""
        return any(name not in self.nodes for name in nodes)

    def place_for(
        self,
        device: DeviceId,
        nodes: Collection[str],
        gone: Collection[PodUid],
        beside: Mapping[str, int] = MappingProxyType({}),
    ) -> tuple[str, str]:
        """A node that can use the device and has room for the pod once these are gone.

        Where there is none, "" and why. `beside` says how many such pods have their room there.
        """
        offer, why = self.offers[device], "none of its nodes is known"
        for name in nodes:
            room = self.nodes.get(name)
            if room is None:
                continue
            if not offer.nodes.match(room.name, room.labels):
                why = f'node "{name}" cannot use it'
            elif not (reason := room.why_not(self.needs, gone, beside.get(name, 0))):
                return name, ""
            else:
                why = self.needs.doubt or f'node "{name}" {reason}'
        return "", why
