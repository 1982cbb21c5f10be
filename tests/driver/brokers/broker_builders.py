"""Builders of what Configurations want, of devices, and of what is stored for them."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from driver.api import ConfigurationName, InstanceName, NodeName
from driver.brokers import bodies
from driver.brokers.bodies import Made
from driver.brokers.counts import NONE, Count
from driver.brokers.devices import Device
from driver.brokers.plans import Plan, plan_device
from driver.brokers.pod_specs import PLACEHOLDER
from driver.brokers.stored import Phase, Stored, stored
from driver.brokers.workloads import Workloads

NODE_A, NODE_B, NODE_C = NodeName("node-a"), NodeName("node-b"), NodeName("node-c")
CONFIGURATION = "akri-onvif"
CAMERA = InstanceName("akri-onvif-8120fe")
SERVICE_SPEC: dict[str, Any] = {"ports": [{"port": 80}], "type": "ClusterIP"}


def a_container(slots: str = "1", **overrides: Any) -> dict[str, Any]:
    """A container that asks for slots of the device as Akri's documentation shows it."""
    resources = {"limits": {PLACEHOLDER: slots}, "requests": {PLACEHOLDER: slots}}
    return {"name": "broker", "image": "broker:1", "resources": resources, **overrides}


def a_pod_spec(slots: str = "1", **overrides: Any) -> dict[str, Any]:
    return {"containers": [a_container(slots)], **overrides}


def a_job_spec(slots: str = "1", **overrides: Any) -> dict[str, Any]:
    return {"template": {"spec": a_pod_spec(slots, restartPolicy="Never")}, **overrides}


def some_workloads(**overrides: Any) -> Workloads:
    """A Configuration that wants a broker Pod with one slot; any field may be given."""
    fields: dict[str, Any] = {
        "namespace": "plant",
        "configuration": CONFIGURATION,
        "uid": "uid-of-configuration",
        "generation": 3,
        "pod": a_pod_spec(),
    }
    return Workloads(**{**fields, **overrides})


def some_jobs(**overrides: Any) -> Workloads:
    """A Configuration that wants a broker Job with one slot."""
    return some_workloads(**{"pod": None, "job": a_job_spec(), **overrides})


def a_device(name: str = CAMERA, **overrides: Any) -> Device:
    """A camera with two slots that two nodes see, by the device plugin."""
    fields: dict[str, Any] = {
        "namespace": "plant",
        "name": InstanceName(name),
        "uid": f"uid-of-{name}",
        "configuration": ConfigurationName(CONFIGURATION),
        "shared": True,
        "is_dra": False,
        "capacity": 2,
        "nodes": (NODE_A, NODE_B),
    }
    return Device(**{**fields, **overrides})


def count_of(*devices: Device) -> Count:
    """These devices in numbers."""
    found = NONE
    for device in devices:
        found = found.plus(device)
    return found


def as_stored(made: Made, **overrides: Any) -> Stored:
    """What the API server stores of a body; any field of what is read may be given."""
    metadata = {**made.body["metadata"], "uid": f"uid-of-{made.resource.plural}/{made.name}"}
    return replace(stored(made.resource, {**made.body, "metadata": metadata}), **overrides)


def a_broker(
    wanted: Workloads,
    device: Device,
    node: NodeName = NODE_A,
    phase: Phase = "Running",
    **overrides: Any,
) -> Stored:
    """The stored broker Pod of a device on a node."""
    return as_stored(bodies.pod(wanted, device, node), phase=phase, **overrides)


def a_job(wanted: Workloads, device: Device, **overrides: Any) -> Stored:
    """The stored broker Job of a device."""
    return as_stored(bodies.job(wanted, device), **overrides)


def a_made_template(wanted: Workloads, device: Device) -> Made:
    """The ResourceClaimTemplate that is made for a device; there must be one."""
    made = bodies.claim_template(wanted, device)
    assert made is not None
    return made


def a_template(wanted: Workloads, device: Device, **overrides: Any) -> Stored:
    """The stored ResourceClaimTemplate of a device."""
    return as_stored(a_made_template(wanted, device), **overrides)


def names_of(made: tuple[Made, ...] | tuple[Stored, ...]) -> list[str]:
    return [each.name for each in made]


def planned(
    wanted: Workloads | None,
    device: Device,
    *found: Stored,
    waits: dict[str, float] | None = None,
    may_create: bool = True,
) -> Plan:
    """The plan for one Instance, of what is stored; `waits` are seconds of brokers by name."""
    seconds = waits or {}
    return plan_device(
        wanted, device, found, lambda name: seconds.get(name, 0.0), may_create=may_create
    )


ONE_NODE = a_device(nodes=(NODE_A,))
"""A camera that one node sees."""
