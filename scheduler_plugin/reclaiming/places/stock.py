"""All that is known of nodes and devices: what is watched anyway, and what CEL said of devices."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field

from scheduler_plugin.objects.claims import DeviceId
from scheduler_plugin.reclaiming.places.answers import Answers
from scheduler_plugin.reclaiming.places.nodes import Nodes
from scheduler_plugin.reclaiming.places.offered_devices import SEVERAL, OfferedDevices
from scheduler_plugin.reclaiming.places.offers import Offer
from scheduler_plugin.reclaiming.places.seekers import Ask


@dataclass(frozen=True, slots=True)
class Stock:
    """Nodes, devices, and which devices would do for what."""

    nodes: Nodes = field(default_factory=Nodes)
    devices: OfferedDevices = field(default_factory=OfferedDevices)
    answers: Answers = field(default_factory=Answers)

    def accepts(self, ask: Ask, device: DeviceId) -> bool:
        """Whether a device may fit what is asked for, were it free."""
        offer = self.devices.offer(device)
        return offer is not None and self.answers.accepts(ask.request, offer)

    def offers_for(self, ask: Ask) -> Iterator[Offer]:
        """The devices of the drivers that its class names."""
        for device in self.devices.of_drivers(ask.drivers):
            if (offer := self.devices.offer(device)) is not None:
                yield offer

    def reachable(self, node: str) -> Iterator[DeviceId]:
        """The devices that a node can use."""
        yield from self.devices.on(node)
        view = self.nodes.get(node)
        for device in self.devices.on(SEVERAL):
            offer = self.devices.offer(device)
            if offer is not None and view is not None and offer.nodes.match(node, view.labels):
                yield device

    def nodes_of(self, device: DeviceId) -> Iterable[str]:
        """The nodes that can use a device."""
        offer = self.devices.offer(device)
        if offer is None:
            return ()
        if offer.node:
            return (offer.node,) if self.nodes.get(offer.node) is not None else ()
        return self._nodes_matching(offer)

    def _nodes_matching(self, offer: Offer) -> Sequence[str]:
        """Those that it names are few; else all are looked at."""
        names = offer.nodes.names or self.nodes
        views = ((name, self.nodes.get(name)) for name in names)
        return [n for n, view in views if view is not None and offer.nodes.match(n, view.labels)]
