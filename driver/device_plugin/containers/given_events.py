"""Events on pods when a device changes that the device plugin gave to them, see `device_events`."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from driver.api import InstanceName, NodeName
from driver.device_plugin.containers.instance_cdi import GivenChange, GivenFile
from driver.instances.slots.node_pods import Listing, PodName
from driver.instances.slots.slots import InstanceSlots, slot_devices
from driver.preparing.grants.device_events import DeviceEvent, Given, event_of
from driver.preparing.grants.device_locators import OFFLINE, DeviceLocator


def given_event(
    change: GivenChange, left: Sequence[str], where: DeviceLocator
) -> DeviceEvent | None:
    """What changed.

    Args:
        change: Of an Instance that containers of this node have.
        left: Paths where its device was before, and is not now, in order of time.
        where: What is known of the devices.
    """
    is_back = change.before is None and change.after is not None
    before = replace(_given(change.instance, change.before), withheld=OFFLINE if is_back else "")
    after = replace(_given(change.instance, change.after), withheld=change.withdrawn, left=left)
    return event_of(
        f"The {named(change.instance)}",
        before,
        after,
        where.owner,
        has_moved=before.paths != after.paths,
    )


def named(instance: InstanceName) -> str:
    """A device in the middle of a sentence."""
    return f"device of Instance {instance}"


def _given(instance: InstanceName, file: GivenFile | None) -> Given:
    """Without the variables whose names end with the hash: they say the same as the others."""
    if file is None:
        return Given((), {})
    ending = f"_{instance.rpartition('-')[2].upper()}"
    plain = {name: value for name, value in file.variables.items() if not name.endswith(ending)}
    return Given(file.paths, plain)


def pods_with(
    instance: InstanceName,
    views: Mapping[InstanceName, InstanceSlots],
    listing: Listing,
    node: NodeName,
) -> Iterable[PodName]:
    """The pods that have an Instance, by the kubelet's account."""
    if instance not in views:
        return ()
    devices = set(slot_devices(views[instance], node).values())
    return dict.fromkeys(
        used.pod for used in sorted(listing.devices, key=str) if used.device in devices
    )
