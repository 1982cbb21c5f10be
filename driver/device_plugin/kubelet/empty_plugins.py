"""Device plugins without devices, for resources of which pods still have devices.

The kubelet forgets a resource five minutes after its plugin has ended. From then on, as long as a
pod of the node has a device of the resource, the kubelet starts no container that requests it
('endpoint not found in cache for a registered resource'). That concerns restarts in that pod, and
also new pods that get their device through DRA. A plugin with an empty list avoids this, and
kube-scheduler makes claims on Nodes that offer none of a resource.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from driver.api import NodeName
from driver.device_plugin.containers.responses import ContainerResponse, Refused
from driver.device_plugin.slots.allocation import OfConfiguration, OfInstance, Plugin
from driver.instances.slots.slots import InstanceSlots
from driver.instances.stored.device_usage import ByInstance


class NothingToGive:
    """Refuses calls, which the kubelet makes for a pod that it lost in a restart."""

    async def allocate(
        self, plugin: Plugin, containers: Sequence[Sequence[str]]
    ) -> tuple[ContainerResponse, ...] | Refused:
        ids = ", ".join(sorted(device for devices in containers for device in devices))
        reason = "devices are offered through Dynamic Resource Allocation here"
        return Refused(f"{plugin} offers no device {ids} any more: {reason}")

    def preferred(
        self, plugin: Plugin, available: Sequence[str], must_include: Sequence[str], size: int
    ) -> tuple[str, ...]:
        return tuple(available[:size])


def plugins_in_use(instances: Iterable[InstanceSlots], node: NodeName) -> frozenset[Plugin]:
    """The plugins through which pods of a node hold slots."""
    return frozenset(
        OfInstance(slots.name)
        if isinstance(holder, ByInstance)
        else OfConfiguration(slots.configuration, unique_devices=True)
        for slots in instances
        for holder in slots.held_by(node).values()
    )
