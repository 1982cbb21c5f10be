"""Devices that a simulation removes, and what happens to the pods that use them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from driver.shapes.configurations import ConfigurationObject
from kube.shapes.reading import JsonObject, read_as
from kube.words import number_of
from scheduler_plugin.accounting.world import World
from scheduler_plugin.asking.simulated_changes import NoChangeError
from scheduler_plugin.asking.snapshots import Snapshot, key_of, with_objects
from scheduler_plugin.viewing.device_rows import DeviceRow, device_rows


@dataclass(frozen=True, slots=True, kw_only=True)
class LostDevice:
    """A removed device, and what happens to the pods that use it."""

    device: DeviceRow
    sentence: str


def without_devices(
    snapshot: Snapshot, world: World, names: Sequence[str]
) -> tuple[Snapshot, tuple[LostDevice, ...]]:
    """The snapshot without devices or Instances of these names, and the removed devices.

    Raises:
        NoChangeError: If no device or Instance has one of the names.
    """
    if not names:
        return snapshot, ()
    rows = device_rows(
        snapshot.of("resourceslices"),
        snapshot.of("instances"),
        snapshot.of("resourceclaims"),
        world,
    )
    lost = [row for row in rows if row.name in names or row.instance in names]
    for name in names:
        if not any(name in (row.name, row.instance) for row in lost):
            raise NoChangeError(f"there is no device or Instance {name}.")
    gone = {row.name for row in lost} | {row.instance for row in lost}
    slices = [_slice_without(obj, gone) for obj in snapshot.of("resourceslices")]
    instances = [obj for obj in snapshot.of("instances") if key_of(obj)[1] not in gone]
    configurations = (read_as(ConfigurationObject, obj) for obj in snapshot.of("configurations"))
    effects = {
        found.metadata.name: found.spec.offline_taint_effect
        for found in configurations
        if found.spec is not None
    }
    found = with_objects(with_objects(snapshot, "resourceslices", slices), "instances", instances)
    return found, tuple(
        LostDevice(device=row, sentence=_lost(row, effects.get(row.configuration) or "NoSchedule"))
        for row in lost
    )


def _slice_without(obj: JsonObject, gone: Iterable[str]) -> JsonObject:
    spec = obj.get("spec") or {}
    left = [device for device in spec.get("devices") or () if device["name"] not in gone]
    return {**obj, "spec": {**spec, "devices": left}}


def _lost(row: DeviceRow, effect: str) -> str:
    if not row.used:
        return f"No pod uses the device. It has {number_of(row.slots, 'free slot')}."
    users = ", ".join(dict.fromkeys(user.what for user in row.users))
    if row.path == "DevicePlugin":
        return f"Pods of {users} hold its slots until they end; no new slot is given."
    pods = number_of(sum(len(user.pods) for user in row.users), "pod")
    if effect == "NoExecute":
        return f"The taint NoExecute evicts {pods} of {users}."
    return (
        "The taint NoSchedule evicts no pod: the claims stay allocated and charged until their pods"
        f" end ({users}; {pods})."
    )
