"""Devices that are held for pods, and others that would get them.

Filter sees no devices: it keeps a pod off a node only where what is free there and not held is not
enough for it. Where kube-scheduler picks a held device all the same, Bind refuses it, and the pod
is kept off that node for as long as something is held there.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from scheduler_plugin.accounting.holds import Hold
from scheduler_plugin.accounting.world_views import WorldView
from scheduler_plugin.objects.claims import ClaimView, DeviceId
from scheduler_plugin.objects.names import PodUid, Reason
from scheduler_plugin.objects.node_requests import NOTHING
from scheduler_plugin.objects.pods import PodView
from scheduler_plugin.reclaiming.places.device_use import DeviceUse
from scheduler_plugin.reclaiming.places.places import InDoubtError, Place, Places
from scheduler_plugin.reclaiming.places.seekers import Seeker, seekers_of
from scheduler_plugin.reclaiming.places.stock import Stock


class HeldDevices:
    """Which pods are kept off which nodes for the sake of what is held."""

    def __init__(self, world: WorldView, stock: Stock) -> None:
        self._world = world
        self._stock = stock
        # Nodes where a pod was given what is held, by pod.
        self._picked: dict[PodUid, dict[str, Hold]] = {}

    def kept_off(self, pod: PodView) -> Mapping[str, str]:
        """The nodes to which a pod may not go now, each with the reason, and why as a sentence."""
        holds = self._others(pod)
        if not holds:
            self._picked.clear()
            return {}
        found = self._picked_before(pod, holds)
        seekers = seekers_of([pod], self._world)
        if isinstance(seekers, str):
            return found
        for node in self._nodes_with(holds):
            if node not in found and (hold := self._kept(seekers[0], node, holds)) is not None:
                found[node] = _refusal(pod, hold)
        return found

    def why_taken(self, pod: PodView, claims: Sequence[ClaimView], node: str) -> str:
        """Why a pod may not have the devices that it was given; "" where it may."""
        for hold in self._others(pod):
            for device, slots in hold.devices:
                if self._is_taken(claims, device, slots):
                    self._picked.setdefault(pod.uid, {})[node] = hold
                    return _refusal(pod, hold, device)
        return ""

    def _others(self, pod: PodView) -> list[Hold]:
        """What is held for others, but for those that could as well have what is held for it.

        kube-scheduler chooses which of its devices each of several pods gets that are alike.
        """
        holds = self._world.assumptions.holds
        others = [h for h in holds.of_devices() if h.devices and h.pod != pod.uid]
        own = holds.get(pod.uid)
        if own is None or not own.devices:
            return others
        return [hold for hold in others if not self._may_have(hold.pod, own)]

    def _may_have(self, uid: PodUid, hold: Hold) -> bool:
        """Whether a pod could use all that is held for another."""
        pod = self._world.facts.pod(uid)
        seekers = seekers_of([pod], self._world) if pod is not None else ""
        if isinstance(seekers, str):
            return False
        asks = seekers[0].asks
        return all(any(self._stock.accepts(a, device) for a in asks) for device, _ in hold.devices)

    def _picked_before(self, pod: PodView, holds: Sequence[Hold]) -> dict[str, str]:
        picked = self._picked.get(pod.uid, {})
        return {node: _refusal(pod, hold) for node, hold in picked.items() if hold in holds}

    def _nodes_with(self, holds: Sequence[Hold]) -> dict[str, None]:
        """The nodes that can use anything that is held."""
        devices = dict.fromkeys(device for hold in holds for device, _ in hold.devices)
        return {node: None for device in devices for node in self._stock.nodes_of(device)}

    def _kept(self, seeker: Seeker, node: str, holds: Sequence[Hold]) -> Hold | None:
        """For whose sake: where a pod fits a node, and not beside what is held."""
        places = Places(self._stock, DeviceUse(self._world, (), ()), ())
        before = [_place(hold, node) for hold in holds]
        try:
            if isinstance(places.fit(seeker, node, None, ()), str):
                return None  # kube-scheduler knows, or something is on its way.
            is_kept = isinstance(places.fit(seeker, node, None, before), str)
        except InDoubtError:
            return None
        return self._first(node, holds) if is_kept else None

    def _first(self, node: str, holds: Sequence[Hold]) -> Hold | None:
        reachable = frozenset(self._stock.reachable(node))
        held = (h for h in holds if any(device in reachable for device, _ in h.devices))
        return next(held, None)

    def _is_taken(self, claims: Sequence[ClaimView], device: DeviceId, slots: int) -> bool:
        """Whether claims have a device, and what is left of it is less than what is held."""
        results = [r for claim in claims for r in claim.results or () if r.device_id == device]
        if not any(not result.admin_access for result in results):
            return False
        offer = self._stock.devices.offer(device)
        if offer is None or offer.slots is None:
            return True
        return self._used(device, offer.slots) + slots > offer.slots

    def _used(self, device: DeviceId, all_slots: int) -> int:
        return sum(
            all_slots if result.slots is None else result.slots
            for claim in self._world.facts.claims_with(device)
            for result in claim.results or ()
            if result.device_id == device and not result.admin_access
        )


def _place(hold: Hold, node: str) -> Place:
    """What is held, as a place on whatever node can use it."""
    return Place(hold.pod, node, hold.devices, (), NOTHING)


def _refusal(pod: PodView, hold: Hold, device: DeviceId | None = None) -> str:
    what = str(device) if device is not None else "a device of this node"
    said = f"{what} is held for {hold.name}: {pod} gets another, or waits until that has it."
    return f"{Reason.DEVICE_HELD}: {said}"
