"""Devices that are held for pods, and refusals for the other pods.

Filter sees no devices: it refuses a node to a pod only where the free devices that are not held
are not enough. If kube-scheduler picks a held device all the same, Bind refuses it, and Filter
refuses that node to the pod for as long as something is held there.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from scheduler_plugin.accounting.holds import Hold
from scheduler_plugin.accounting.world_views import WorldView
from scheduler_plugin.objects.claims import ClaimView, DeviceId, Result
from scheduler_plugin.objects.devices.device_facts import DeviceFacts
from scheduler_plugin.objects.names import PodUid, Reason
from scheduler_plugin.objects.pods import PodView
from scheduler_plugin.reclaiming.placement.demands import PodDemand, demands_of
from scheduler_plugin.reclaiming.placement.device_parts import allocated_part, times
from scheduler_plugin.reclaiming.placement.device_room import (
    are_free,
    free_counters,
    released_with,
)
from scheduler_plugin.reclaiming.placement.device_use import DeviceUse
from scheduler_plugin.reclaiming.placement.inventory import Inventory
from scheduler_plugin.reclaiming.placement.node_fit import NodeFit, NotModelledError, Placement


class HeldDevices:
    """The nodes that are refused to a pod because of holds."""

    def __init__(self, world: WorldView, inventory: Inventory) -> None:
        self._world = world
        self._inventory = inventory
        # By pod, the nodes where kube-scheduler picked a held device for it.
        self._picked: dict[PodUid, dict[str, Hold]] = {}

    def kept_off(self, pod: PodView) -> Mapping[str, str]:
        """The nodes that are refused to a pod now, each with the reason and a sentence."""
        holds = self._others(pod)
        if not holds:
            self._picked.pop(pod.uid, None)
            return {}
        found = self._picked_before(pod, holds)
        demands = demands_of([pod], self._world)
        if isinstance(demands, str):
            return found
        wanted = [hold for hold in holds if self._is_wanted(hold, demands[0])]
        return self._refusals(demands[0], wanted) | found if wanted else found

    def why_taken(self, pod: PodView, claims: Sequence[ClaimView], node: str) -> str:
        """Why a pod may not have the devices that kube-scheduler picked; "" where it may.

        A claim in use is allocated already: a pod that joins it gets nothing that is held.
        """
        given = [claim for claim in claims if not self._is_used(claim)]
        for hold in self._others(pod):
            for device, slots in hold.devices:
                if self._is_taken(given, device, slots, hold) or self._is_overlapped(
                    given, device, hold
                ):
                    self._forget_old()
                    self._picked.setdefault(pod.uid, {})[node] = hold
                    return _refusal(pod, hold, device)
        return ""

    def _others(self, pod: PodView) -> list[Hold]:
        """The holds of other pods, without pods that could use what is held for this one.

        kube-scheduler decides which of several equal pods gets which of the held devices.
        """
        holds = self._world.assumptions.holds
        of_devices = (h for h in holds.of_devices() if h.devices or h.resources)
        others = [hold for hold in of_devices if hold.pod != pod.uid]
        own = holds.get(pod.uid)
        if own is None or not own.devices:
            return others
        return [hold for hold in others if not self._may_have(hold.pod, own)]

    def _may_have(self, uid: PodUid, hold: Hold) -> bool:
        """Whether a pod could use everything of another pod's hold."""
        pod = self._world.facts.pod(uid)
        demands = demands_of([pod], self._world) if pod is not None else ""
        if isinstance(demands, str):
            return False
        return all(self._accepts(demands[0], device) for device, _ in hold.devices)

    def _accepts(self, demand: PodDemand, device: DeviceId) -> bool:
        return any(self._inventory.accepts(request, device) for request in demand.device_requests)

    def _is_wanted(self, hold: Hold, demand: PodDemand) -> bool:
        names = {request.alternative.name for request in demand.resources}
        return any(self._accepts(demand, device) for device, _ in hold.devices) or any(
            name in names for name, _ in hold.resources
        )

    # Nodes where kube-scheduler picked a held device.

    def _picked_before(self, pod: PodView, holds: Sequence[Hold]) -> dict[str, str]:
        picked = self._picked.get(pod.uid, {})
        return {node: _refusal(pod, hold) for node, hold in picked.items() if hold in holds}

    def _forget_old(self) -> None:
        holds = self._world.assumptions.holds
        for uid, picked in list(self._picked.items()):
            if not any(hold.pod in holds for hold in picked.values()):
                del self._picked[uid]

    # Nodes where too little is free beside what is held.

    def _refusals(self, demand: PodDemand, holds: Sequence[Hold]) -> dict[str, str]:
        places = NodeFit(self._inventory, DeviceUse(self._world, (), ()), ())
        answers: dict[object, Hold | None] = {}
        found = {}
        for node in self._nodes_with(holds):
            alike, fits = self._alike(demand, node, holds, places)
            if alike not in answers:
                answers[alike] = self._kept(fits, node, holds)
            if (hold := answers[alike]) is not None:
                found[node] = _refusal(demand.pod, hold)
        return found

    def _nodes_with(self, holds: Sequence[Hold]) -> dict[str, None]:
        """The nodes that can use any held device."""
        devices = dict.fromkeys(device for hold in holds for device, _ in hold.devices)
        own = {hold.node: None for hold in holds if hold.resources}
        return self._inventory.nodes_of(devices) | own

    def _alike(
        self, demand: PodDemand, node: str, holds: Sequence[Hold], places: NodeFit
    ) -> tuple[object, Callable[[Sequence[Placement]], bool]]:
        """A key that is equal for nodes with the same answer, and a test of one such node.

        For a node without matching devices of its own only devices count that several nodes can
        use. Its other resources do not count: kube-scheduler asks only about nodes that have them.
        """
        has_own = any(self._accepts(demand, device) for device in self._inventory.devices.on(node))
        if has_own or any(hold.node == node and hold.resources for hold in holds):
            return node, lambda before: isinstance(
                places.fit(demand, node, None, before), Placement
            )
        reached = self._inventory.selectors_of(node)
        return reached, lambda before: places.has_devices(demand, node, None, before)

    def _kept(
        self, fits: Callable[[Sequence[Placement]], bool], node: str, holds: Sequence[Hold]
    ) -> Hold | None:
        """The hold because of which a pod does not fit a node; None where there is none."""
        before = [_place(hold, node) for hold in holds]
        try:
            # Without holds it has to fit: otherwise kube-scheduler refuses the node itself.
            is_kept = fits(()) and not fits(before)
        except NotModelledError:
            return None
        return self._first(node, holds) if is_kept else None

    def _first(self, node: str, holds: Sequence[Hold]) -> Hold | None:
        reachable = frozenset(self._inventory.reachable(node))
        for hold in holds:
            has_own = hold.node == node and hold.resources
            if has_own or any(device in reachable for device, _ in hold.devices):
                return hold
        return None

    # Devices that kube-scheduler picked.

    def _is_used(self, claim: ClaimView) -> bool:
        return any(pod.is_bound and not pod.ended for pod in self._world.facts.consumers(claim))

    def _is_taken(
        self, claims: Sequence[ClaimView], device: DeviceId, slots: int, hold: Hold
    ) -> bool:
        """Whether claims have a device, and less of it is free than is held."""
        results = [r for claim in claims for r in claim.results or () if r.device_id == device]
        if not any(not result.admin_access for result in results):
            return False
        offer = self._inventory.devices.offer(device)
        if offer is None or not offer.published.is_shared:
            return True
        if (facts := offer.divided) is not None:
            return not self._leaves_part(device, facts, hold)
        has = offer.slots or 0
        return self._used(device, has, hold) + slots > has

    def _is_overlapped(self, claims: Sequence[ClaimView], device: DeviceId, hold: Hold) -> bool:
        """Whether claims have devices that leave a held one too little of shared counters."""
        devices = self._inventory.devices
        others = {*released_with(device, devices)} - {device}
        if not any(each in others for claim in claims for each in claim.devices):
            return False
        pool = devices.pool(device.driver, device.pool)
        free = free_counters(pool, lambda each: bool(self._stay(each.device, hold)))
        is_free = are_free(pool.devices[device.name], free)
        return not is_free and not self._stay(device, hold)

    def _leaves_part(self, device: DeviceId, facts: DeviceFacts, hold: Hold) -> bool:
        """Whether the held part of a device that claims divide is free beside their parts."""
        held = dict(hold.parts).get(device)
        used = [allocated_part(facts, result.consumed) for result in self._stay(device, hold)]
        return held is not None and times(facts, held, used) >= 1

    def _used(self, device: DeviceId, all_slots: int, hold: Hold) -> int:
        """The used slots of a device, without claims whose users release them for the hold."""
        stay = self._stay(device, hold)
        return sum(all_slots if each.slots is None else each.slots for each in stay)

    def _stay(self, device: DeviceId, hold: Hold) -> list[Result]:
        """The allocations of a device, without claims whose users release them for the hold."""
        return [
            result
            for claim in self._world.facts.claims_with(device)
            if claim.uid not in hold.awaits
            for result in claim.results or ()
            if result.device_id == device and not result.admin_access
        ]


def _place(hold: Hold, node: str) -> Placement:
    """The hold as a placement on a node that can use it."""
    own = hold.resources if hold.node == node else ()
    asked = {name: 1000 * n for name, n in own}
    return Placement(hold.pod, node, hold.devices, own, asked, hold.parts)


def _refusal(pod: PodView, hold: Hold, device: DeviceId | None = None) -> str:
    what = str(device) if device is not None else "a device of this node"
    said = f"{what} is held for {hold.name}: {pod} gets another, or waits until {hold.name} has it."
    return f"{Reason.DEVICE_HELD}: {said}"
