"""Conflicts: devices that another claim of this node still has.

    a claim's devices, PreparedClaims ──conflict_of──► a sentence with the conflicting claim

kube-scheduler allocates a device as soon as it is free in the API. After a forced deletion of a pod
that is before its containers have ended on this node. Also, two Configurations may offer one device
as two, see `driver.instances.rivals`.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence

from driver.api import DeviceName
from driver.instances.instances import Instance
from driver.instances.rivals import is_shareable, shown_first
from driver.preparing.files.prepared import (
    AllocatedDevice,
    PreparedClaim,
    PreparedDevice,
)

_Wanted = tuple[AllocatedDevice, Instance]


def conflict_of(
    devices: Sequence[AllocatedDevice],
    instances: Mapping[tuple[str, DeviceName], Instance],
    others: Iterable[PreparedClaim],
) -> str:
    """A sentence: why a claim cannot have its devices now; "" if it can.

    Args:
        devices: Its allocated devices.
        instances: Their Instances, by pool and device.
        others: The other prepared claims.
    """
    names, nodes = {wanted.device for wanted in devices}, _by_node(devices, instances)
    for holder in others:
        for held in holder.devices:
            # Nearly all of a thousand claims have other devices.
            if held.allocated.device in names and (which := _same(devices, held)):
                return _conflict(which, holder)
            if nodes and not nodes.keys().isdisjoint(held.held) and (which := _rival(nodes, held)):
                return _conflict(which, holder)
    return ""


def _conflict(which: str, holder: PreparedClaim) -> str:
    return f"device {which} is still prepared for ResourceClaim {holder.reference}"


def _same(devices: Iterable[AllocatedDevice], held: PreparedDevice) -> str:
    """The device that another claim has already; "" for none, or if both may have it."""
    return next((str(each) for each in devices if each.excludes(held.allocated)), "")


def _by_node(
    devices: Iterable[AllocatedDevice], instances: Mapping[tuple[str, DeviceName], Instance]
) -> Mapping[str, list[_Wanted]]:
    """The devices by device node; a device with admin access conflicts with none."""
    found = defaultdict[str, list[_Wanted]](list)
    for wanted in devices:
        instance = instances.get((wanted.pool, wanted.device))
        if instance is not None and not wanted.admin_access:
            for node in instance.nodes:
                found[node].append((wanted, instance))
    return found


def _rival(nodes: Mapping[str, list[_Wanted]], held: PreparedDevice) -> str:
    """A device that another claim has through another Configuration; "" if it is shareable."""
    if held.allocated.admin_access:
        return ""
    for node in sorted(nodes.keys() & set(held.held), key=shown_first):
        for wanted, instance in nodes[node]:
            shared = held.is_shareable and is_shareable(instance)
            if instance.configuration != held.configuration and not shared:
                return (
                    f"{wanted} of Configuration {instance.configuration} is at {node}, as is device"
                    f" {held.allocated} of Configuration {held.configuration}, which"
                )
    return ""
