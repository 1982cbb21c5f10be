"""Builders of the driver's values and of the objects they are parsed from."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

from driver.api import Configuration, ConfigurationName, NodeName
from driver.devices import Device, DeviceSpec

NODE = NodeName("node-a")
NOW = datetime(2026, 11, 21, 12, 0, tzinfo=UTC)


def a_configuration(name: str = "loop", **overrides: Any) -> Configuration:
    """A valid Configuration; any field may be given."""
    fields: dict[str, Any] = {
        "name": ConfigurationName(name),
        "namespace": "default",
        "uid": f"uid-of-{name}",
        "generation": 1,
        "created": NOW - timedelta(days=1),
        "handler": "udev",
        "discovery_details": "udevRules: ['KERNEL==\"loop7\"']",
        "capacity": 1,
        "unique_devices": True,
        "offline_grace_period": timedelta(),
        "broker_properties": {},
    }
    return Configuration(**{**fields, **overrides})


def a_device(device_id: str = "/devices/virtual/block/loop7", **overrides: Any) -> Device:
    """A block device with a device node."""
    node = f"/dev/{device_id.rsplit('/', 1)[-1]}"
    fields: dict[str, Any] = {
        "id": device_id,
        "properties": {"UDEV_DEVPATH": device_id, "UDEV_DEVNODE": node},
        "device_specs": (DeviceSpec(node, node),),
    }
    return Device(**{**fields, **overrides})


def a_configuration_object(name: str = "loop", **spec: Any) -> dict[str, Any]:
    """A Configuration as the API server returns it; fields of its spec may be given."""
    handler = {"name": "udev", "discoveryDetails": "udevRules: ['KERNEL==\"loop7\"']"}
    return {
        "apiVersion": "akri.sh/v0",
        "kind": "Configuration",
        "metadata": {
            "name": name,
            "namespace": "default",
            "uid": f"uid-of-{name}",
            "generation": 3,
            "creationTimestamp": "2026-11-20T12:00:00Z",
        },
        "spec": {"discoveryHandler": handler, **spec},
    }
