"""Instances, as far as their brokers depend on them."""

from __future__ import annotations

from dataclasses import dataclass

from driver.api import BROKER_JOB, ConfigurationName, InstanceName, NodeName
from driver.instances.unseen_instances import ObservedInstance
from kube.shapes.reading import JsonObject


@dataclass(frozen=True, slots=True, kw_only=True)
class Device:
    """An Instance, as far as its brokers depend on it.

    Attributes:
        is_dra: Whether brokers have the device by a claim, or else by the device plugin.
        capacity: How many slots it has.
        nodes: The nodes that see the device, in order.
        ran: The revision of the Job that was made for it; "" for none.
    """

    namespace: str
    name: InstanceName
    uid: str
    configuration: ConfigurationName
    shared: bool
    is_dra: bool
    capacity: int = 1
    nodes: tuple[NodeName, ...] = ()
    ran: str = ""

    @property
    def most_pods(self) -> int:
        """How many broker Pods it may have: one on each node that sees it, within its slots."""
        return min(self.capacity, len(self.nodes))


def device(observed: ObservedInstance, *, is_dra: bool) -> Device | None:
    """The device of an Instance; None while the Instance is being deleted."""
    slots = observed.slots
    if slots.deleted:
        return None
    return Device(
        namespace=slots.namespace,
        name=slots.name,
        uid=slots.uid,
        configuration=slots.configuration,
        shared=slots.shared,
        is_dra=is_dra,
        capacity=slots.capacity,
        nodes=tuple(sorted(slots.nodes)),
        ran=observed.broker_job,
    )


def ran_patch(device: Device, revision: str) -> JsonObject:
    """The merge patch by which an Instance remembers that a Job was made for it; "" forgets it."""
    return {"metadata": {"uid": device.uid, "annotations": {BROKER_JOB: revision or None}}}
