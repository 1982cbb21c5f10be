"""Builders of Instances with slots, as the API server would keep them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from driver.api import ConfigurationName, InstanceName, NodeName
from driver.devices import DeviceSpec
from driver.instances.instances import Instance
from driver.instances.slots.slots import InstanceSlots, instance_slots

NODE_A, NODE_B, NODE_C = NodeName("node-a"), NodeName("node-b"), NodeName("node-c")
CONFIGURATION = ConfigurationName("akri-onvif")
CAMERA_1, CAMERA_2 = InstanceName("akri-onvif-8120fe"), InstanceName("akri-onvif-a19705")
RESOURCE = "akri.sh/akri-onvif"
BOTH = frozenset({CAMERA_1, CAMERA_2})


def an_instance_object(
    name: str = CAMERA_1, usage: Mapping[str, Any] | None = None, **spec: Any
) -> dict[str, Any]:
    """An Instance as the API server returns it; `usage` is its `deviceUsage`."""
    return {
        "metadata": {
            "namespace": "default",
            "name": name,
            "uid": f"uid-of-{name}",
            "resourceVersion": "1",
        },
        "spec": {
            "configurationName": name.rpartition("-")[0],
            "cdiName": "akri.sh/akri-onvif=8120fe",
            "capacity": 2,
            "nodes": [NODE_A, NODE_B, NODE_C],
            "deviceUsage": dict(usage or {}),
            **spec,
        },
    }


def some_slots(
    name: str = CAMERA_1, usage: Mapping[str, Any] | None = None, **spec: Any
) -> InstanceSlots:
    """The view of such an object."""
    return instance_slots(an_instance_object(name, usage, **spec))


def two_cameras(usage: Mapping[str, Any] | None = None, **spec: Any) -> list[InstanceSlots]:
    """The two cameras of the seed; `usage` names slots of either."""
    return [
        some_slots(name, {k: v for k, v in (usage or {}).items() if k.startswith(name)}, **spec)
        for name in (CAMERA_1, CAMERA_2)
    ]


def a_camera(name: str = CAMERA_1, **overrides: Any) -> Instance:
    """A camera as a node's discovery knows it."""
    configuration, _, digest = name.rpartition("-")
    fields: dict[str, Any] = {
        "name": InstanceName(name),
        "hash": digest,
        "configuration": ConfigurationName(configuration),
        "namespace": "default",
        "properties": {"URL": f"rtsp://{digest}"},
        "mounts": (),
        "device_specs": (DeviceSpec(f"/dev/{digest}", f"/dev/{digest}", "rw"),),
        "capacity": 2,
        "unique_devices": True,
        "shared": True,
    }
    return Instance(**{**fields, **overrides})


def by_configuration(device: str, node: str = NODE_A) -> str:
    """The value of a slot that is held through the Configuration."""
    return f"C:{device}:{node}"
