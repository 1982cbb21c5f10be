"""A fake API server of Instances, as the slots of the device-plugin path see it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from driver.instances.slots.slot_writes import SlotWrite, merge_patch
from driver.instances.slots.slots import InstanceSlots, instance_slots
from tests.driver.slot_builders import an_instance_object


class ConflictError(Exception):
    """Raised when a write names another UID or resource version than the object has."""


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
