"""Device plugins without devices, for resources of which pods have some from before.

The kubelet forgets a resource five minutes after its plugin has ended. From then on, as long as a
pod of the node has a device of it, no container that asks for it is started there: neither one of
that pod again, nor one of a new pod, though DRA has what that asks for ('endpoint not found in
cache for a registered resource'). A plugin that lists nothing keeps the kubelet from it, and
kube-scheduler makes claims where a Node offers none of a resource.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from driver.api import NodeName
from driver.device_plugin.containers.responses import ContainerResponse, Refused
from driver.device_plugin.slots.allocation import OfConfiguration, OfInstance, Plugin
from driver.instances.slots.slots import InstanceSlots
from driver.instances.stored.device_usage import ByInstance


class NothingToGive:
    """Answers a kubelet that asks nevertheless, as for a pod which it lost in a restart."""

    async def allocate(
        self, plugin: Plugin, containers: Sequence[Sequence[str]]
    ) -> tuple[ContainerResponse, ...] | Refused:
        ids = ", ".join(sorted(device for devices in containers for device in devices))
        reason = "devices are offered through Dynamic Resource Allocation here"
        return Refused(f"{plugin} has no device {ids} any more: {reason}")

    def preferred(
        self, plugin: Plugin, available: Sequence[str], must_include: Sequence[str], size: int
    ) -> tuple[str, ...]:
        return tuple(available[:size])


def plugins_in_use(instances: Iterable[InstanceSlots], node: NodeName) -> frozenset[Plugin]:
    """Those through which pods of a node have slots."""
    return frozenset(
        OfInstance(slots.name)
        if isinstance(holder, ByInstance)
        else OfConfiguration(slots.configuration, unique_devices=True)
        for slots in instances
        for holder in slots.held_by(node).values()
    )
