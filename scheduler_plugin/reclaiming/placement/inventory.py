"""The inventory: watched nodes and devices, and the results of CEL selectors."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from scheduler_plugin.objects.claims import DeviceId
from scheduler_plugin.reclaiming.placement.answers import Answers
from scheduler_plugin.reclaiming.placement.demands import DeviceRequest
from scheduler_plugin.reclaiming.placement.nodes import Nodes
from scheduler_plugin.reclaiming.placement.offered_devices import OfferedDevices
from scheduler_plugin.reclaiming.placement.offers import selected_nodes


@dataclass(frozen=True, slots=True)
class Inventory:
    """Nodes, devices, and the results that say which devices match which requests."""

    nodes: Nodes = field(default_factory=Nodes)
    devices: OfferedDevices = field(default_factory=OfferedDevices)
    answers: Answers = field(default_factory=Answers)
    _by_selector: dict[str | None, tuple[int, tuple[str, ...]]] = field(
        default_factory=dict, init=False, repr=False, compare=False
    )

    def accepts(self, request: DeviceRequest, device: DeviceId) -> bool:
        """Whether a device may match a request, free or not.

        Devices of drivers that the class excludes are not evaluated.
        """
        if request.drivers and device.driver not in request.drivers:
            return False
        offer = self.devices.offer(device)
        return offer is not None and self.answers.accepts(request.criteria, offer)

    def reachable(self, node: str) -> Iterator[DeviceId]:
        """The devices that a node can use."""
        yield from self.devices.on(node)
        for selector in self.selectors_of(node):
            yield from self.devices.selected_by(selector)

    def selectors_of(self, node: str) -> tuple[str | None, ...]:
        """The node selectors of shared devices that select this node."""
        view = self.nodes.get(node)
        if view is None:
            return ()
        selectors = self.devices.selectors()
        return tuple(s for s in selectors if selected_nodes(s).match(node, view.labels))

    def nodes_of(self, devices: Iterable[DeviceId]) -> dict[str, None]:
        """The nodes that can use any of these devices."""
        found: dict[str, None] = {}
        selectors: dict[str | None, None] = {}
        for offer in filter(None, map(self.devices.offer, devices)):
            if not offer.node:
                selectors[offer.published.selector] = None
            elif self.nodes.get(offer.node) is not None:
                found[offer.node] = None
        return found | dict.fromkeys(name for s in selectors for name in self._selected(s))

    def _selected(self, selector: str | None) -> tuple[str, ...]:
        """The nodes of a selector, cached until a node changes."""
        changes, found = self._by_selector.get(selector, (-1, ()))
        if changes != self.nodes.changes:
            terms, views = selected_nodes(selector), ((n, self.nodes.get(n)) for n in self.nodes)
            found = tuple(n for n, view in views if view and terms.match(n, view.labels))
            self._by_selector[selector] = self.nodes.changes, found
        return found
