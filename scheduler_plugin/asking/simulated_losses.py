"""Devices that would be gone in a simulation, and what becomes of the pods that use them."""

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
    """A device that would be gone, and what becomes of the pods that use it."""

    device: DeviceRow
    sentence: str


def without_devices(
    snapshot: Snapshot, world: World, names: Sequence[str]
) -> tuple[Snapshot, tuple[LostDevice, ...]]:
    """The snapshot without devices or Instances of these names, and what that means.

    Raises:
        NoChangeError: If there is none of a name.
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
        return f"{number_of(row.slots, 'free slot')} fewer; no pod uses it."
    users = ", ".join(dict.fromkeys(user.what for user in row.users))
    if row.path == "DevicePlugin":
        return f"Its slots stay held by {users} until their pods end; no new ones are given."
    pods = number_of(sum(len(user.pods) for user in row.users), "pod")
    if effect == "NoExecute":
        return f"It is tainted NoExecute. Evicted with {users}: {pods}."
    return f"It is tainted NoSchedule: {users} keep it, and their charge, until {pods} ended."
