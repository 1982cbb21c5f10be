"""Slot reconciliation: slots follow the use of devices in the kubelet's listing.

    Instances, Evidence ──reconcile──► Reconciliation: writes, conflicts, waiting slots

The kubelet does not report that a device is free again, and its Allocate names no pod. So a slot
that this node holds is released if, by evidence read in either order,

* the kubelet's pod-resources listing does not name its device,
* no pod of this node that may still run requests the resource without being covered by the listing
  (`node_pods.uncovered`), or the device was last listed for a pod that is gone, and
* the last Allocate of the device came before the evidence was read, and `SETTLED` before the
  listing: the kubelet lists a device only after our answer.

Conversely, a container that uses a device with a free slot gets the slot again. If another holder
has the slot, that is a conflict, and an Event reports it. Slots of other nodes are not touched.

How the shell uses it, see `kubelet.usage`:

* It notes the moment and lists pod-resources; it notes the moment and reads the node's pods
  consistently. The second read is needed only if some held slot is not listed; otherwise `NodePods`
  from the store, as of the last consistent read, suffices. If the kubelet does not answer,
  `listing` is None, and nothing is written.
* Each write is carried out under the lock of its Instance, which Allocate takes, too, unless
  `is_overtaken`. If the outcome is unknown, the same write is sent again before the lock is
  released; otherwise an Allocate could come in between.
* The moments of Allocates are kept longer than evidence is used. After a start there are none, and
  none are needed: the pod of an earlier Allocate requests its resource.
* The users of devices are remembered from each listing, and forgotten with each Allocate. They are
  not remembered in the first minute of a process, while an earlier one may still answer the
  kubelet.
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
"""Seconds after which the kubelet lists an answered Allocate, or never will.

It takes milliseconds, and until then the request of the pod protects the slot. This time is for the
rare case that another pod of the same name, force-deleted and still listed, covers that request.
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Evidence:
    """The evidence of the use of devices on this node.

    Attributes:
        listing: The kubelet's listing; None if the kubelet did not answer.
        pods: The pods of the node.
        allocated: When this process last gave each device to the kubelet.
        users: The pod for which each device was last listed, if it was not given since. A regular
            init container is never listed, so without this its pod would delay all releases.
    """

    listing: Listing | None
    pods: NodePods
    allocated: Mapping[DeviceKey, Moment] = field(default_factory=dict)
    users: Mapping[DeviceKey, PodName] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class SlotConflict:
    """A container that uses a device without holding its slot; the sentence is for an Event."""

    pod: PodName
    device: DeviceKey
    instance: InstanceName
    sentence: str


@dataclass(frozen=True, slots=True)
class Waiting:
    """A slot or a use that cannot be decided yet; reconcile again soon.

    Attributes:
        subject: Name of the slot, of the device without a slot, of a resource, or of the node.
    """

    subject: str
    reason: str


@dataclass(frozen=True, slots=True)
class Reconciliation:
    """The decision about this node's slots. If all fields are empty, nothing needs to be done."""

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
    """Without a listing all slots wait, also on a node that holds none: a container may use one."""
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
        """Pods that may use more than is listed: after its restart the kubelet may list none."""
        return tuple(
            Waiting(resource, f"pod {pod} asks for it and is not listed with it yet")
            for resource, pod in sorted(self.unsure.items())
        )

    def _release(self, slots: InstanceSlots, index: int) -> None:
        self.changes.setdefault(slots.name, {})[index] = None

    def _doubt(self, device: DeviceKey) -> str:
        """Why a device that is not listed may still be in use; "" if it is not."""
        if device.resource in self.unsure and not self._was_of_a_pod_that_is_gone(device):
            pod = self.unsure[device.resource]
            return f"pod {pod} may hold devices of {device.resource} that are not listed yet"
        given = self.allocated.get(device)
        if given is not None and (given >= self.read or given + SETTLED > self.asked):
            return "the kubelet was given it after the listing"
        return ""


class _Claims:
    """The slots that containers of this node use although the Instances show them as free."""

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
        """The Instance of a device, the slots that it may have, and its holder.

        None if the Instance does not exist, and for Akri's ids, which do not name an Instance.
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
