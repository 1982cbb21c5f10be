"""Slot reconciliation: slots follow what the kubelet says its containers use.

    Instances, Evidence ──reconcile──► Reconciliation: writes, conflicts, what waits

The kubelet tells nobody when a device is free again, and its Allocate names no pod. So a slot that
this node holds is released if, by evidence read in either order,

* the kubelet's pod-resources listing does not name its device,
* no pod of this node that may still run asks for that resource without being covered by the
  listing (`node_pods.uncovered`), or else the device was listed for a pod that is gone since, and
* the last Allocate of the device came before the evidence was read, and `SETTLED` before the
  listing: the kubelet enters a device only after our answer.

And the other way round: a container that uses a device whose slot is free gets the slot back; where
somebody else has it, that is a conflict, said in an Event. Slots of other nodes are not touched.

How the shell uses it, see `kubelet.usage`:

* It notes the moment, lists pod-resources; notes the moment, reads the node's pods consistently
  (needed only if some held slot is not listed; else `NodePods` from the store will do, as of the
  last consistent read). No answer from the kubelet: `listing=None`, and nothing is written.
* Each write is carried out under the lock of its Instance, the one Allocate takes, unless
  `is_overtaken`. Outcome not known: send the same write again before the lock is given up, or an
  Allocate could come in between.
* The moments of Allocates are kept for as long as evidence may be older. After a start there are
  none, and need not be: what an earlier process answered, its pod asks for.
* Users of devices are remembered from each listing, and forgotten with each Allocate. Not in the
  first minute of a process: an earlier one may still be answering the kubelet.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from driver.api import InstanceName, NodeName
from driver.device_ids import (
    DeviceKey,
    configuration_resource,
    instance_resource,
    parse_slot_id,
    slot_id,
)
from driver.instances.slots.node_pods import ListedDevice, Listing, NodePods, PodName, uncovered
from driver.instances.slots.slot_writes import Moment, SlotWrite, slot_write
from driver.instances.slots.slots import (
    InstanceSlots,
    by_name,
    full_sentence,
    held_sentence,
    slot_devices,
)
from driver.instances.stored.device_usage import ByConfiguration, ByInstance, Holder

SETTLED: Moment = 1.0
"""After it, the kubelet has entered an answered Allocate, or never will.

It takes milliseconds; until then the pod's request protects the slot. This is for the rare case
that a pod of the same name, deleted by force and still listed, seems to cover that request.
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Evidence:
    """What is known of the use of devices on this node.

    Attributes:
        listing: The kubelet's; None if it did not answer.
        allocated: When each device was last given to the kubelet, by this process.
        users: The pod that each device was listed for last, if it was not given since. A regular
            init container is never listed, so its pod would hold up the releases of all others.
    """

    listing: Listing | None
    pods: NodePods
    allocated: Mapping[DeviceKey, Moment] = field(default_factory=dict)
    users: Mapping[DeviceKey, PodName] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class SlotConflict:
    """A container that uses a device without having its slot; the sentence is for an Event."""

    pod: PodName
    device: DeviceKey
    instance: InstanceName
    sentence: str


@dataclass(frozen=True, slots=True)
class Waiting:
    """A slot or use that could not be settled yet; look again soon.

    Attributes:
        subject: Name of the slot, of the device without one, of a resource, or of the node.
    """

    subject: str
    reason: str


@dataclass(frozen=True, slots=True)
class Reconciliation:
    """What is to be done about this node's slots. All empty: nothing, until something happens."""

    writes: tuple[SlotWrite, ...] = ()
    conflicts: tuple[SlotConflict, ...] = ()
    waiting: tuple[Waiting, ...] = ()


def reconcile(
    node: NodeName, instances: Iterable[InstanceSlots], evidence: Evidence
) -> Reconciliation:
    """Compare a node's slots with what its containers use."""
    views = by_name(instances)
    if evidence.listing is None:
        return Reconciliation(waiting=_unanswered(views, node))
    releases = _Releases(node, evidence.listing, evidence)
    for _, slots in sorted(views.items()):
        releases.look_at(slots)
    claims = _Claims(node, views, evidence, releases.changes)
    for used in sorted(evidence.listing.devices, key=_order):
        claims.look_at(used)
    return Reconciliation(
        writes=_writes(node, views, releases, claims),
        conflicts=tuple(claims.conflicts),
        waiting=(*releases.waiting, *claims.waiting) or releases.unlisted(),
    )


def _unanswered(views: Mapping[InstanceName, InstanceSlots], node: NodeName) -> tuple[Waiting, ...]:
    """A node that holds nothing waits, too: its containers may use what was taken from it."""
    reason = "the kubelet's pod-resources listing is not available"
    held = tuple(
        Waiting(slot_id(name, index), reason)
        for name, slots in sorted(views.items())
        for index in slots.held_by(node)
    )
    return held or (Waiting(node, reason),)


def _order(used: ListedDevice) -> tuple[str, str, str, str, str]:
    pod = used.pod
    return used.device.resource, used.device.id, pod.namespace, pod.name, used.container


class _Releases:
    """The slots of this node that nothing uses."""

    def __init__(self, node: NodeName, listing: Listing, evidence: Evidence) -> None:
        self.node = node
        self.asked = listing.asked
        self.read = min(listing.asked, evidence.pods.as_of)
        self.allocated = evidence.allocated
        self.last_users = evidence.users
        self.users = {used.device: used.pod for used in listing.devices}
        self.unsure = uncovered(evidence.pods.pods, listing)
        self.alive = {pod.name for pod in evidence.pods.pods if not pod.finished}
        self.changes: dict[InstanceName, dict[int, Holder | None]] = {}
        self.guards: dict[InstanceName, dict[DeviceKey, Moment]] = {}
        self.waiting: list[Waiting] = []

    def look_at(self, slots: InstanceSlots) -> None:
        devices = slot_devices(slots, self.node)
        for index, device in devices.items():
            if device is None:
                self._release(slots, index)
            elif device in self.users:
                self._keep_used(slots, index, self.users[device])
            elif reason := self._doubt(device):
                self.waiting.append(Waiting(slot_id(slots.name, index), reason))
            else:
                self._release(slots, index)
                self.guards.setdefault(slots.name, {})[device] = self.read

    def _was_of_a_pod_that_is_gone(self, device: DeviceKey) -> bool:
        return device in self.last_users and self.last_users[device] not in self.alive

    def _keep_used(self, slots: InstanceSlots, index: int, pod: PodName) -> None:
        if pod not in self.alive:
            reason = f"the kubelet still lists it for pod {pod}, which is gone"
            self.waiting.append(Waiting(slot_id(slots.name, index), reason))

    def unlisted(self) -> tuple[Waiting, ...]:
        """Pods that may use more than is known: a kubelet that was started anew lists none."""
        return tuple(
            Waiting(resource, f"pod {pod} asks for it and is not listed with it yet")
            for resource, pod in sorted(self.unsure.items())
        )

    def _release(self, slots: InstanceSlots, index: int) -> None:
        self.changes.setdefault(slots.name, {})[index] = None

    def _doubt(self, device: DeviceKey) -> str:
        """Why a device that is not listed may be in use all the same; empty if it is not."""
        if device.resource in self.unsure and not self._was_of_a_pod_that_is_gone(device):
            pod = self.unsure[device.resource]
            return f"pod {pod} may hold devices of {device.resource} that are not listed yet"
        given = self.allocated.get(device)
        if given is not None and (given >= self.read or given + SETTLED > self.asked):
            return "the kubelet was given it since"
        return ""


class _Claims:
    """The slots that containers of this node use and the Instances show as free."""

    def __init__(
        self,
        node: NodeName,
        views: Mapping[InstanceName, InstanceSlots],
        evidence: Evidence,
        released: Mapping[InstanceName, Mapping[int, Holder | None]],
    ) -> None:
        self.node = node
        self.released = released
        self.views = views
        self.alive = {pod.name for pod in evidence.pods.pods if not pod.finished}
        self.held = {
            device
            for slots in views.values()
            for device in slot_devices(slots, node).values()
            if device is not None
        }
        self.changes: dict[InstanceName, dict[int, Holder | None]] = {}
        self.conflicts: list[SlotConflict] = []
        self.waiting: list[Waiting] = []

    def look_at(self, used: ListedDevice) -> None:
        found = self._slots_for(used.device)
        if used.device in self.held or found is None:
            return
        if used.pod not in self.alive:
            reason = f"pod {used.pod} is listed with it, and gone or not seen yet"
            self.waiting.append(Waiting(str(used.device), reason))
            return
        self._take(used, *found)

    def _take(
        self, used: ListedDevice, slots: InstanceSlots, wanted: tuple[int, ...], holder: Holder
    ) -> None:
        taken = self.changes.setdefault(slots.name, {})
        held = slots.holders.keys() - self.released.get(slots.name, {}).keys()
        for index in wanted:
            if index not in held and index not in taken:
                taken[index] = holder
                self.held.add(used.device)
                return
        who = (
            held_sentence(slots, wanted[0], self.node)
            if len(wanted) == 1
            else full_sentence(slots, self.node)
        )
        sentence = f"Container {used.container} uses device {used.device.id} without a slot: {who}"
        self.conflicts.append(SlotConflict(used.pod, used.device, slots.name, sentence))

    def _slots_for(self, device: DeviceKey) -> tuple[InstanceSlots, tuple[int, ...], Holder] | None:
        """The Instance of a device, the slots that may be its own, and its holder.

        None for devices of Instances that do not exist, and for Akri's ids: those do not say which
        Instance they are of.
        """
        parsed = parse_slot_id(device.id)
        whole = self.views.get(InstanceName(device.id))
        if whole and device.resource == configuration_resource(whole.configuration):
            slots = tuple(range(whole.capacity))
            return whole, slots, ByConfiguration(device.id, self.node)
        view = self.views.get(parsed[0]) if parsed else None
        if parsed is None or view is None:
            return None
        if device.resource == instance_resource(view.name):
            return view, (parsed[1],), ByInstance(self.node)
        if device.resource == configuration_resource(view.configuration):
            return view, (parsed[1],), ByConfiguration(device.id, self.node)
        return None


def _writes(
    node: NodeName,
    views: Mapping[InstanceName, InstanceSlots],
    releases: _Releases,
    claims: _Claims,
) -> tuple[SlotWrite, ...]:
    found = []
    for name, slots in sorted(views.items()):
        changes = {**releases.changes.get(name, {}), **claims.changes.get(name, {})}
        if changes:
            found.append(slot_write(slots, node, changes, releases.guards.get(name)))
    return tuple(found)
