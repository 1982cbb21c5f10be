"""Events on pods about changes of devices that the device plugin gave them.

See `device_events`.
"""

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
    change: GivenChange, former_paths: Sequence[str], where: DeviceLocator
) -> DeviceEvent | None:
    """The Event about a change; None if containers are not affected.

    Args:
        change: The change of an Instance that containers of this node have.
        former_paths: Paths where its device was before, in order of time.
        where: The current locations of the devices.
    """
    is_back = change.before is None and change.after is not None
    before = replace(_given(change.instance, change.before), withheld=OFFLINE if is_back else "")
    after = replace(
        _given(change.instance, change.after), withheld=change.withdrawn, former_paths=former_paths
    )
    return event_of(
        f"The {named(change.instance)}",
        before,
        after,
        where.owner,
        has_moved=before.paths != after.paths,
    )


def named(instance: InstanceName) -> str:
    """The words for a device in the middle of a sentence."""
    return f"device of Instance {instance}"


def _given(instance: InstanceName, file: GivenFile | None) -> Given:
    """The content without variables whose names end with the hash: they repeat the others."""
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
    """The pods that have a device of an Instance, by the kubelet's listing."""
    if instance not in views:
        return ()
    devices = set(slot_devices(views[instance], node).values())
    return dict.fromkeys(
        used.pod for used in sorted(listing.devices, key=str) if used.device in devices
    )
