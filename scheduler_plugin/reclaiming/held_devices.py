"""Devices that are held for pods, and others that would get them.

Filter sees no devices: it keeps a pod off a node only where what is free there and not held is not
enough for it. Where kube-scheduler picks a held device all the same, Bind refuses it, and the pod
is kept off that node for as long as something is held there.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from scheduler_plugin.accounting.holds import Hold
from scheduler_plugin.accounting.world_views import WorldView
from scheduler_plugin.objects.claims import ClaimView, DeviceId
from scheduler_plugin.objects.names import PodUid, Reason
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
            self._picked.pop(pod.uid, None)
            return {}
        found = self._picked_before(pod, holds)
        seekers = seekers_of([pod], self._world)
        if isinstance(seekers, str):
            return found
        wanted = [hold for hold in holds if self._is_wanted(hold, seekers[0])]
        return self._refusals(seekers[0], wanted) | found if wanted else found

    def why_taken(self, pod: PodView, claims: Sequence[ClaimView], node: str) -> str:
        """Why a pod may not have the devices that it was given; "" where it may.

        A claim that others use is theirs already: whoever joins it gets nothing that is held.
        """
        given = [claim for claim in claims if not self._is_used(claim)]
        for hold in self._others(pod):
            for device, slots in hold.devices:
                if self._is_taken(given, device, slots, hold):
                    self._forget_old()
                    self._picked.setdefault(pod.uid, {})[node] = hold
                    return _refusal(pod, hold, device)
        return ""

    def _others(self, pod: PodView) -> list[Hold]:
        """What is held for others, but for those that could as well have what is held for it.

        kube-scheduler chooses which of its devices each of several pods gets that are alike.
        """
        holds = self._world.assumptions.holds
        of_devices = (h for h in holds.of_devices() if h.devices or h.resources)
        others = [hold for hold in of_devices if hold.pod != pod.uid]
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
        return all(self._accepts(seekers[0], device) for device, _ in hold.devices)

    def _accepts(self, seeker: Seeker, device: DeviceId) -> bool:
        return any(self._stock.accepts(ask, device) for ask in seeker.asks)

    def _is_wanted(self, hold: Hold, seeker: Seeker) -> bool:
        names = {ask.alternative.name for ask in seeker.resources}
        return any(self._accepts(seeker, device) for device, _ in hold.devices) or any(
            name in names for name, _ in hold.resources
        )

    # Nodes where a pod was given what is held.

    def _picked_before(self, pod: PodView, holds: Sequence[Hold]) -> dict[str, str]:
        picked = self._picked.get(pod.uid, {})
        return {node: _refusal(pod, hold) for node, hold in picked.items() if hold in holds}

    def _forget_old(self) -> None:
        holds = self._world.assumptions.holds
        for uid, picked in list(self._picked.items()):
            if not any(hold.pod in holds for hold in picked.values()):
                del self._picked[uid]

    # Nodes where too little is left beside what is held.

    def _refusals(self, seeker: Seeker, holds: Sequence[Hold]) -> dict[str, str]:
        places = Places(self._stock, DeviceUse(self._world, (), ()), ())
        answers: dict[object, Hold | None] = {}
        found = {}
        for node in self._nodes_with(holds):
            alike, fits = self._alike(seeker, node, holds, places)
            if alike not in answers:
                answers[alike] = self._kept(fits, node, holds)
            if (hold := answers[alike]) is not None:
                found[node] = _refusal(seeker.pod, hold)
        return found

    def _nodes_with(self, holds: Sequence[Hold]) -> dict[str, None]:
        """The nodes that can use anything that is held."""
        devices = dict.fromkeys(device for hold in holds for device, _ in hold.devices)
        own = {hold.node: None for hold in holds if hold.resources}
        return self._stock.nodes_of(devices) | own

    def _alike(
        self, seeker: Seeker, node: str, holds: Sequence[Hold], places: Places
    ) -> tuple[object, Callable[[Sequence[Place]], bool]]:
        """Equal for nodes with one answer; and whether one has enough beside what others have.

        Where a node has nothing of its own that is asked for, it is the devices that several nodes
        can use that count, whatever else it has: kube-scheduler asks only about nodes that have
        that.
        """
        has_own = any(self._accepts(seeker, device) for device in self._stock.devices.on(node))
        if has_own or any(hold.node == node and hold.resources for hold in holds):
            return node, lambda before: isinstance(places.fit(seeker, node, None, before), Place)
        reached = self._stock.selectors_of(node)
        return reached, lambda before: places.has_devices(seeker, node, None, before)

    def _kept(
        self, fits: Callable[[Sequence[Place]], bool], node: str, holds: Sequence[Hold]
    ) -> Hold | None:
        """For whose sake: where a pod fits a node, and not beside what is held."""
        before = [_place(hold, node) for hold in holds]
        try:
            # Where it does not fit anyway kube-scheduler knows, or something is on its way.
            is_kept = fits(()) and not fits(before)
        except InDoubtError:
            return None
        return self._first(node, holds) if is_kept else None

    def _first(self, node: str, holds: Sequence[Hold]) -> Hold | None:
        reachable = frozenset(self._stock.reachable(node))
        for hold in holds:
            has_own = hold.node == node and hold.resources
            if has_own or any(device in reachable for device, _ in hold.devices):
                return hold
        return None

    # Devices that a pod was given.

    def _is_used(self, claim: ClaimView) -> bool:
        return any(pod.is_bound and not pod.ended for pod in self._world.facts.consumers(claim))

    def _is_taken(
        self, claims: Sequence[ClaimView], device: DeviceId, slots: int, hold: Hold
    ) -> bool:
        """Whether claims have a device, and what is left of it is less than what is held."""
        results = [r for claim in claims for r in claim.results or () if r.device_id == device]
        if not any(not result.admin_access for result in results):
            return False
        offer = self._stock.devices.offer(device)
        if offer is None or offer.slots is None:
            return True
        return self._used(device, offer.slots, hold) + slots > offer.slots

    def _used(self, device: DeviceId, all_slots: int, hold: Hold) -> int:
        """How many slots, but for those whose users leave them for the hold."""
        return sum(
            all_slots if result.slots is None else result.slots
            for claim in self._world.facts.claims_with(device)
            if claim.uid not in hold.awaits
            for result in claim.results or ()
            if result.device_id == device and not result.admin_access
        )


def _place(hold: Hold, node: str) -> Place:
    """What is held, as a place on whatever node can use it."""
    own = hold.resources if hold.node == node else ()
    return Place(hold.pod, node, hold.devices, own, {name: 1000 * n for name, n in own})


def _refusal(pod: PodView, hold: Hold, device: DeviceId | None = None) -> str:
    what = str(device) if device is not None else "a device of this node"
    said = f"{what} is held for {hold.name}: {pod} gets another, or waits until that has it."
    return f"{Reason.DEVICE_HELD}: {said}"
