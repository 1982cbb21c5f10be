"""Builders of Instances with slots, as the API server would keep them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from driver.api import ConfigurationName, InstanceName, NodeName
from driver.devices import DeviceSpec
from driver.instances.instances import Instance
from driver.instances.slots.slot_writes import SlotWrite, merge_patch
from driver.instances.slots.slots import InstanceSlots, instance_slots

NODE_A, NODE_B, NODE_C = NodeName("node-a"), NodeName("node-b"), NodeName("node-c")
CONFIGURATION = ConfigurationName("akri-onvif")
CAMERA_1, CAMERA_2 = InstanceName("akri-onvif-8120fe"), InstanceName("akri-onvif-a19705")
RESOURCE = "akri.sh/akri-onvif"
BOTH = frozenset({CAMERA_1, CAMERA_2})


class ConflictError(Exception):
    """Raised when a write names another UID or resource version than the object has."""


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


def patched(body: Mapping[str, Any], write: SlotWrite) -> dict[str, Any]:
    """The object after a write, as the API server merges it (RFC 7386)."""
    patch = merge_patch(write)
    metadata, spec = body["metadata"], body["spec"]
    expected = {k: v for k, v in patch["metadata"].items() if k != "finalizers"}
    if expected != {k: metadata[k] for k in expected}:
        raise ConflictError(write.instance)
    usage = {**spec["deviceUsage"], **patch["spec"]["deviceUsage"]}
    version = str(int(metadata["resourceVersion"]) + 1)
    return {
        "metadata": {**metadata, **patch["metadata"], "resourceVersion": version},
        "spec": {**spec, "deviceUsage": {k: v for k, v in usage.items() if v is not None}},
    }


class FakeInstances:
    """Instances in an API server, that are read and written at once."""

    def __init__(self, *bodies: Mapping[str, Any]) -> None:
        self.bodies = {body["metadata"]["name"]: dict(body) for body in bodies}

    @classmethod
    def of(cls, *names: str, **spec: Any) -> FakeInstances:
        """Instances whose slots are all free."""
        return cls(*(an_instance_object(name, **spec) for name in names))

    def views(self) -> list[InstanceSlots]:
        return [instance_slots(body) for body in self.bodies.values()]

    def usage(self) -> dict[str, str]:
        """All that is in use, of all Instances."""
        return {k: v for b in self.bodies.values() for k, v in b["spec"]["deviceUsage"].items()}

    def write(self, writes: Iterable[SlotWrite]) -> None:
        for write in writes:
            self.bodies[write.instance] = patched(self.bodies[write.instance], write)

    def by_hand(self, slot: str, value: str | None) -> None:
        """What an administrator does with kubectl."""
        name = slot.rpartition("-")[0]
        usage = {**self.bodies[name]["spec"]["deviceUsage"], slot: value}
        self.edit(name, deviceUsage={k: v for k, v in usage.items() if v})

    def edit(self, name: str, **spec: Any) -> None:
        """Change fields of an Instance's spec."""
        body = self.bodies[name]
        version = str(int(body["metadata"]["resourceVersion"]) + 1)
        self.bodies[name] = {
            "metadata": {**body["metadata"], "resourceVersion": version},
            "spec": {**body["spec"], **spec},
        }


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
