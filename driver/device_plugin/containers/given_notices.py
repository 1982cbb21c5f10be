"""Notices: what pods are told when a device changes that the device plugin gave to them.

As `claim_notices` for claims: containers that run keep what they were started with.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from driver.api import InstanceName, NodeName
from driver.device_plugin.containers.instance_cdi import GivenChange, GivenFile
from driver.instances.slots.node_pods import Listing, PodName
from driver.instances.slots.slots import InstanceSlots, slot_devices
from driver.preparing.grants.former_paths import held_sentence, latest_of
from driver.preparing.grants.whereabouts import Whereabouts


@dataclass(frozen=True, slots=True)
class GivenNotice:
    """What the pods of an Instance are told.

    Attributes:
        reason: Of the Event.
        is_warning: Whether containers may hold what is not their device.
    """

    instance: InstanceName
    reason: str
    sentence: str
    is_warning: bool = True


def given_notice(
    change: GivenChange, left: Sequence[str], where: Whereabouts
) -> GivenNotice | None:
    """What changed.

    Args:
        change: Of an Instance that containers of this node have.
        left: Paths where its device was before, and is not now, in order of time.
        where: What is known of the devices.
    """
    name = f"The device of Instance {change.instance}"
    before = change.before.paths if change.before else ()
    latest = latest_of(left, before, len(change.after.paths if change.after else before))
    held = held_sentence(latest, left, where.owner)
    if change.after is None:
        away = f"{name} {change.withdrawn}: no container is started with it until it is back."
        return GivenNotice(
            change.instance, "DeviceAway", away + held_sentence(latest, left, where.owner, ".")
        )
    places = ", ".join(change.after.paths)
    if change.before is None:
        back = f"{name} is back{places and ' at ' + places}."
        return GivenNotice(change.instance, "DeviceBack", back + held, is_warning=bool(left))
    if change.before.paths != change.after.paths:
        return GivenNotice(change.instance, "DeviceMoved", f"{name} moved to {places}." + held)
    if changed := _changed(change.instance, change.before, change.after):
        old = f"{name} changed: containers that run have its old {', '.join(changed)}."
        return GivenNotice(change.instance, "DeviceChanged", old)
    return None


def path_taken(instance: InstanceName, path: str, owner: InstanceName) -> GivenNotice:
    """A path that containers may hold from before, and that is another device's now."""
    return GivenNotice(
        instance,
        "DevicePathTaken",
        f"{path} is Instance {owner}'s now. Containers that were started when the device of"
        f" Instance {instance} was there hold it: start them anew.",
    )


def _changed(instance: InstanceName, before: GivenFile, after: GivenFile) -> list[str]:
    """Names without the hash; values may be secrets."""
    ending = f"_{instance.rpartition('-')[2].upper()}"
    names = before.variables.keys() | after.variables.keys()
    different = (n for n in names if before.variables.get(n) != after.variables.get(n))
    return sorted(name for name in different if not name.endswith(ending))


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
