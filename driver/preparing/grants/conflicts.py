"""Conflicts: what keeps a claim from a device that another claim has, on this node.

    a claim's devices, PreparedClaims ──hindrance_of──► which claim is in the way, in a sentence

kube-scheduler gives a device away as soon as the API shows it free; after a forced deletion of a
pod that is before the containers of its last claim are gone from this node. And what two
Configurations offer it takes for two devices, as a rule, though it may be one: see
`driver.instances.rivals`.
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


def hindrance_of(
    devices: Sequence[AllocatedDevice],
    instances: Mapping[tuple[str, DeviceName], Instance],
    others: Iterable[PreparedClaim],
) -> str:
    """Why a claim cannot have its devices now, in a sentence; "" if it can.

    Args:
        devices: Those that it was given.
        instances: What they are, by pool and device.
        others: The other claims that are prepared.
    """
    names, nodes = {wanted.device for wanted in devices}, _by_node(devices, instances)
    for holder in others:
        for held in holder.devices:
            # Of a thousand claims, nearly all have nothing to do with this one.
            if held.allocated.device in names and (said := _same(devices, held)):
                return _told(said, holder)
            if nodes and not nodes.keys().isdisjoint(held.held) and (said := _rival(nodes, held)):
                return _told(said, holder)
    return ""


def _told(said: str, holder: PreparedClaim) -> str:
    return f"device {said} is still prepared for ResourceClaim {holder.reference}"


def _same(devices: Iterable[AllocatedDevice], held: PreparedDevice) -> str:
    """Which of these a claim has already; "" if none, or if there is room for both."""
    return next((str(each) for each in devices if each.excludes(held.allocated)), "")


def _by_node(
    devices: Iterable[AllocatedDevice], instances: Mapping[tuple[str, DeviceName], Instance]
) -> Mapping[str, list[_Wanted]]:
    """By what tells their device nodes; administrative access takes nothing from anybody."""
    found = defaultdict[str, list[_Wanted]](list)
    for wanted in devices:
        instance = instances.get((wanted.pool, wanted.device))
        if instance is not None and not wanted.admin_access:
            for node in instance.nodes:
                found[node].append((wanted, instance))
    return found


def _rival(nodes: Mapping[str, list[_Wanted]], held: PreparedDevice) -> str:
    """What another claim has through another Configuration; "" if both offer it to several."""
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
