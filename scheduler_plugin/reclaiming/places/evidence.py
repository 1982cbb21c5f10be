"""What has to be read before a device is taken from anybody: kept nowhere, read when needed.

pod and its claims ──► what it asks of a node, and of a device
slices             ──► which devices would do            nodes, pods on them ──► whether it fits
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain

from scheduler_plugin.objects.claims import DeviceId
from scheduler_plugin.objects.names import PodUid
from scheduler_plugin.reclaiming.device_wants import Ask, Seeker
from scheduler_plugin.reclaiming.places.node_room import NodeRoom, PodNeeds
from scheduler_plugin.reclaiming.places.offers import DeviceRequest, Offer

MOST_NODES = 8
"""Of how many nodes it is read for one pod what there is room for."""


@dataclass(frozen=True, slots=True)
class Unread:
    """What has to be looked at before it can be decided.

    Attributes:
        nodes: None at first, when it has to be read what is asked for.
        seekers: For whom.
    """

    nodes: tuple[str, ...]
    seekers: tuple[Seeker, ...] = ()


@dataclass(slots=True)
class Known:
    """What was read for one decision: whoever is told `Unread` enters it, and then goes on."""

    evidence: Evidence | None = None

    @property
    def now(self) -> Evidence:
        """It, once something was read."""
        assert self.evidence is not None, "nobody looks for places before something is read"
        return self.evidence


class InDoubtError(Exception):
    """Raised inside a search where it cannot be said what would serve the pod: why."""


class NotReadError(Exception):
    """Raised inside a search where nodes have to be read first."""

    def __init__(self, nodes: tuple[str, ...]) -> None:
        super().__init__(nodes)
        self.nodes = nodes


@dataclass(frozen=True, slots=True, kw_only=True)
class Evidence:
    """What is known beyond the world for a pod, and for those that go with it.

    Attributes:
        needs: By pod.
        requests: What is asked of a device.
        offers: All devices.
        on: Those of each node; under "" those that several nodes can use.
        refused: Which devices do not satisfy the selectors; None where that cannot be evaluated.
            What was not evaluated, since it takes too long, counts as satisfied.
        accepted: Which devices would do, as far as somebody asked; None in doubt.
        nodes: None for a node that is not there.
    """

    needs: Mapping[PodUid, PodNeeds]
    requests: Mapping[Ask, DeviceRequest]
    offers: Mapping[DeviceId, Offer]
    on: Mapping[str, Sequence[DeviceId]]
    refused: Mapping[Ask, Mapping[DeviceId, bool | None]]
    accepted: Mapping[Ask, dict[DeviceId, bool | None]]
    nodes: Mapping[str, NodeRoom | None] = field(default_factory=dict)

    @property
    def doubt(self) -> str:
        """Why it cannot be said what would serve them; "" where it can."""
        of_devices = (request.doubt for request in self.requests.values())
        of_pods = (needs.doubt for needs in self.needs.values())
        return next(filter(None, chain(of_devices, of_pods)), "")

    def kind(self, seeker: Seeker) -> object:
        """Equal for pods that the same devices and nodes serve."""
        claims = list(dict.fromkeys(ask.claim for ask in seeker.asks))
        asked = tuple(
            (ask.alternative.count, self.requests[ask], self._agrees_in(claims, ask))
            for ask in seeker.asks
        )
        return asked, seeker.resources, self.needs[seeker.pod.uid]

    def _agrees_in(self, claims: list[str], ask: Ask) -> int | None:
        """The number of the claim whose other devices have to agree; None for none."""
        return claims.index(ask.claim) if self.requests[ask].constraints else None

    def accepts(self, ask: Ask, device: DeviceId) -> bool:
        """Whether a device would do for certain, were it free."""
        return self.answer(ask, device) is True

    def answer(self, ask: Ask, device: DeviceId) -> bool | None:
        """As `DeviceRequest.accepts`; it is asked for once."""
        known = self.accepted[ask]
        if device not in known:
            offer = self.offers.get(device)
            satisfies = self.refused[ask].get(device, True)
            request = self.requests[ask]
            known[device] = offer is not None and request.accepts(offer, satisfies=satisfies)
        return known[device]

    def with_nodes(self, nodes: Mapping[str, NodeRoom | None]) -> Evidence:
        """The same, with more nodes."""
        return replace(self, nodes={**self.nodes, **nodes})

    def nodes_of(self, device: DeviceId, others: Collection[str] = ()) -> tuple[str, ...]:
        """Nodes that may use a device: its own, those it names, else such as others use it on."""
        offer = self.offers[device]
        if offer.node:
            return (offer.node,)
        return tuple(dict.fromkeys((*others, *offer.nodes.names)))

    def in_order(self, pod: PodUid, nodes: Collection[str]) -> list[str]:
        """Nodes that the pod names go first, and then those that were read."""
        named = self.needs[pod].names
        return sorted(nodes, key=lambda name: (name not in named, name not in self.nodes))

    def unread(self, nodes: Collection[str]) -> tuple[str, ...]:
        """Those of some nodes that are to be read yet, no more than may be."""
        missing = [name for name in nodes if name not in self.nodes]
        return tuple(missing[: max(0, MOST_NODES - len(self.nodes))])
