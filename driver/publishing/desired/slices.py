"""Devices as ResourceSlices have them: makes the devices of one pool from Instances.

An Instance becomes one device or several:

    capacity 1                                         one exclusive device
    capacity N, unique devices, consumable capacity    one device with N slots
    capacity N otherwise                               N exclusive devices, <name>-0 …

Uses that are held through the device plugin are deducted, see `deductions`. A device that has slots
in the pool keeps them, even at capacity 1: kube-scheduler counts shares separately, so an exclusive
device would look free to it although claims have shares of it.

`Features` says what depends on the version of the API server. A probe finds it out.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass
from itertools import count
from typing import Any

from driver.api import (
    CAPACITY_SLOTS,
    DEGRADED_TAINT,
    DRIVER_NAME,
    OFFLINE_TAINT,
    SHARED_POOLS,
    DeviceName,
    NodeName,
)
from driver.derived import Deriving, derived
from driver.instances.instances import Instance
from driver.names import short_hash
from driver.publishing.desired.attributes import attributes
from driver.publishing.desired.deductions import Deductions
from kube.shapes.names import LONGEST_LABEL, is_label

NOTHING_HELD = Deductions()

_OFFLINE = {"key": OFFLINE_TAINT, "effect": "NoSchedule"}


@dataclass(frozen=True, slots=True)
class Features:
    """What the API server keeps of a device.

    Attributes:
        consumable_capacity: `allowMultipleAllocations` and `requestPolicy` (KEP-5075).
        taints: Taints of a device (KEP-5055).
        counters: Counter sets in slices of their own, which devices consume (KEP-4815).
        device_nodes: A node selector of each device (KEP-4815).
    """

    consumable_capacity: bool
    taints: bool
    counters: bool = False
    device_nodes: bool = False


@dataclass(frozen=True, slots=True)
class PublishedDevice(Deriving):
    """One device of a pool, and the Instance it is a use of.

    Attributes:
        body: `Device` of resource.k8s.io/v1.
    """

    name: DeviceName
    instance: Instance
    body: Mapping[str, Any]


def published(
    instances: Iterable[Instance],
    features: Features,
    deductions: Deductions = NOTHING_HELD,
    with_slots: Set[DeviceName] = frozenset(),
) -> tuple[PublishedDevice, ...]:
    """The devices of one pool, sorted by Instance, whatever the order of the Instances.

    Device names are unique even if names of Instances are not. If two Instances have the same name
    and namespace, which no inventory should have, only one is published.

    Args:
        instances: The Instances to publish.
        features: What the API server keeps of a device.
        deductions: The uses that are not offered now.
        with_slots: Devices that have slots in the pool, and keep them.
    """
    devices: list[PublishedDevice] = []
    for instance, names in _named(instances, features):
        free_uses = deductions.free_uses(instance)
        shares = has_slots(instance, features) or not with_slots.isdisjoint(names)
        those = derived(instance, _devices, features, names, free_uses if shares else None)
        if free_uses < len(names):
            offered = deductions.offered(instance, names)
            those = tuple(device for device in those if device.name in offered)
        devices += those
    return tuple(devices)


def _devices(
    instance: Instance, features: Features, names: Sequence[DeviceName], slots: int | None
) -> tuple[PublishedDevice, ...]:
    body = _body(instance, features, slots)
    return tuple(PublishedDevice(name, instance, {"name": name, **body}) for name in names)


def device_names(
    instances: Iterable[Instance], features: Features
) -> Mapping[DeviceName, Instance]:
    """The Instance of each device name that `published` would return if no slot were held."""
    return {name: instance for instance, names in _named(instances, features) for name in names}


def _named(
    instances: Iterable[Instance], features: Features
) -> Iterator[tuple[Instance, list[DeviceName]]]:
    taken: set[str] = set()
    for instance in _distinct(instances):
        uses = 1 if has_slots(instance, features) else instance.capacity
        names = _free_names(instance, uses, taken)
        taken.update(names)
        yield instance, names


def has_slots(instance: Instance, features: Features) -> bool:
    """Whether the Instance is one device with slots, rather than one device for each slot."""
    return instance.capacity > 1 and instance.unique_devices and features.consumable_capacity


def device_name(instance_name: str, *, room: int = 0, salt: str = "") -> DeviceName:
    """The DNS label that stands for an Instance.

    A name that is a label stays as it is. Any other name, or a name with a salt, becomes a label
    that ends in ten digits of a hash. Names of Instances end in six digits, so the two kinds
    cannot be confused.

    Args:
        instance_name: `<configuration>-<hash>`; the Configuration's name may have dots.
        room: Characters to leave for a suffix.
        salt: Text that the hash covers besides the name, to tell equal names apart.
    """
    limit = LONGEST_LABEL - room
    if not salt and is_label(instance_name, limit):
        return DeviceName(instance_name)
    digest = short_hash(salt + instance_name)
    stem = re.sub(r"[^a-z0-9-]", "-", instance_name.lower())[: limit - len(digest) - 1]
    return DeviceName(f"{stem.strip('-') or 'device'}-{digest}")


def probe_slice(node: NodeName | None, *, counters: bool = True) -> dict[str, Any]:
    """A ResourceSlice to create with `dryRun: All`: `features_of` reads what comes back.

    Args:
        node: The node whose slices the caller may write; None for the publisher of shared pools.
        counters: Whether a device consumes from a counter set in another slice. If the API server
            refuses that, as Kubernetes 1.34 with the feature on, Moorage uses no counters.
    """
    consumed = {"counterSet": "rivals", "counters": {"units": {"value": "1"}}}
    devices = [
        {"name": "slots", **_slots(2)},
        {"name": "offline", "taints": [_OFFLINE]},
        *([{"name": "rival", "consumesCounters": [consumed]}] if counters else ()),
    ]
    return _probe(node, {"nodeName": node} if node else {"allNodes": True}, devices)


def probe_device_nodes() -> dict[str, Any]:
    """A ResourceSlice to create with `dryRun: All`: `keeps_device_nodes` reads what comes back.

    The create fails if the API server drops the fields.
    """
    return _probe(None, {"perDeviceNodeSelection": True}, [{"name": "seen", "allNodes": True}])


def keeps_device_nodes(stored: Mapping[str, Any]) -> bool:
    """Whether the API server kept the fields of `probe_device_nodes`."""
    devices = stored["spec"].get("devices") or ()
    kept = all(device.get("allNodes") for device in devices)
    return bool(stored["spec"].get("perDeviceNodeSelection") and devices and kept)


def _probe(
    node: NodeName | None, scope: Mapping[str, Any], devices: Sequence[Mapping[str, Any]]
) -> dict[str, Any]:
    return {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceSlice",
        "metadata": {"generateName": f"probe-{DRIVER_NAME}-"},
        "spec": {
            "driver": DRIVER_NAME,
            "pool": {
                "name": "probe" if node else f"{SHARED_POOLS}probe",
                "generation": 1,
                "resourceSliceCount": 1,
            },
            **scope,
            "devices": devices,
        },
    }


def features_of(stored: Mapping[str, Any]) -> Features:
    """What the API server kept of `probe_slice`."""
    devices = {device["name"]: device for device in stored["spec"].get("devices") or ()}
    slots, offline = devices.get("slots", {}), devices.get("offline", {})
    capacity = (slots.get("capacity") or {}).get(CAPACITY_SLOTS) or {}
    return Features(
        consumable_capacity=bool(
            slots.get("allowMultipleAllocations") and capacity.get("requestPolicy")
        ),
        taints=bool(offline.get("taints")),
        counters=bool(devices.get("rival", {}).get("consumesCounters")),
    )


def _distinct(instances: Iterable[Instance]) -> list[Instance]:
    by_identity: dict[tuple[str, str], Instance] = {}
    for instance in instances:
        rival = by_identity.setdefault((instance.name, instance.namespace), instance)
        if rival is not instance:
            by_identity[instance.name, instance.namespace] = min(rival, instance, key=repr)
    return [by_identity[identity] for identity in sorted(by_identity)]


def _body(instance: Instance, features: Features, slots: int | None) -> dict[str, Any]:
    """The fields of each device of an Instance, without its name."""
    shared = {} if slots is None else _slots(slots)
    body = {
        "attributes": attributes(instance, capacities=len(shared.get("capacity", ()))),
        **shared,
    }
    if features.taints and (taints := list(_taints(instance))):
        body["taints"] = taints
    return body


def _taints(instance: Instance) -> Iterator[dict[str, str]]:
    """The taints without `timeAdded`, which the API server sets and the plan of the pool keeps."""
    if not instance.online:
        yield dict(_OFFLINE)
    if found := instance.degraded:
        yield {"key": DEGRADED_TAINT, "effect": found.effect}


def _slots(slots: int) -> dict[str, Any]:
    """A device that several requests use concurrently; the policy gives each of them one slot."""
    # The API server refuses a step that does not fit between the minimum and the capacity.
    steps = {"step": "1"} if slots > 1 else {}
    policy = {"default": "1", "validRange": {"min": "1", **steps}}
    capacity = {"value": quantity(slots), "requestPolicy": policy}
    return {"allowMultipleAllocations": True, "capacity": {CAPACITY_SLOTS: capacity}}


def quantity(number: int) -> str:
    """A quantity in the API server's canonical form, `1k` for 1000, so that it does not change."""
    suffix = ""
    for larger in "kMGTPE":
        if number % 1000:
            break
        number, suffix = number // 1000, larger
    return f"{number}{suffix}"


def _free_names(instance: Instance, uses: int, taken: set[str]) -> list[DeviceName]:
    """The names of an Instance's devices: the preferred ones, or salted ones if they are taken."""
    names = derived(instance, _names, uses, "")
    attempts = count()
    while not taken.isdisjoint(names):
        names = _names(instance, uses, f"{instance.namespace}/{next(attempts)}/")
    return names


def _names(instance: Instance, uses: int, salt: str) -> list[DeviceName]:
    if uses <= 1:
        return [device_name(instance.name, salt=salt)][:uses]
    name = device_name(instance.name, room=len(f"-{uses - 1}"), salt=salt)
    return [DeviceName(f"{name}-{use}") for use in range(uses)]
