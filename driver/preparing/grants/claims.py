"""ResourceClaims: the devices of an allocation that this node prepares, or why it may not.

ResourceClaim ──allocated_claim──► AllocatedClaim ──plan_prepare──► PreparedClaim
                            └──────────────┴──► Failure: one sentence for the kubelet
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass

from driver.api import DRIVER_NAME, ClaimUid, DeviceName
from driver.device_health import for_containers
from driver.devices import DeviceSpec, Mount
from driver.discovery.details import shown
from driver.instances.instances import Instance
from driver.names import is_pool_of, is_shared_pool
from driver.preparing.files.prepared import (
    AllocatedDevice,
    ClaimReference,
    PreparedClaim,
    PreparedClaims,
    PreparedDevice,
)
from driver.preparing.grants.claim_configs import ClaimConfigs
from driver.preparing.grants.configured import RefuseMount, configured, no_mounts
from driver.preparing.grants.conflicts import conflict_of
from kube.shapes.claims import AllocationResult
from kube.shapes.full_claims import FullClaim
from kube.shapes.metadata import NO_METADATA
from kube.shapes.pods import NO_GROUP, NO_SPEC, Pod
from kube.shapes.reading import JsonObject, read_as

Instances = Mapping[tuple[str, DeviceName], Instance]
"""The devices that this node can prepare, by pool and name. Slots may share an Instance."""

UID = re.compile(r"[A-Za-z0-9][A-Za-z0-9-]{0,62}")
"""The only accepted form, because UIDs become parts of file names."""

PERMISSIONS = re.compile(r"[rwm]+")

POD_CLAIM = "resource.kubernetes.io/pod-claim-name"
"""Annotation of claims that were made from a template: their name in the pod's spec."""


@dataclass(frozen=True, slots=True)
class Failure:
    """Why a claim is not prepared; the kubelet puts the sentence into an Event of the pod."""

    sentence: str


@dataclass(frozen=True, slots=True)
class AllocatedClaim:
    """This driver's part of a claim's allocation; for `pod_claim` see `PreparedClaim`."""

    reference: ClaimReference
    devices: tuple[AllocatedDevice, ...]
    pod_claim: str | None = ""


def reference_problem(reference: ClaimReference) -> Failure | None:
    """The problem with a reference from the kubelet, before any read; None for none."""
    if not UID.fullmatch(reference.uid):
        return Failure(f"ResourceClaim UID {reference.uid!r} is not a UID")
    if not reference.namespace or not reference.name:
        return Failure(f"ResourceClaim {reference.uid} is named without namespace or name")
    return None


def allocated_claim(
    found: JsonObject | FullClaim | None, wanted: ClaimReference, pools: Collection[str]
) -> AllocatedClaim | Failure:
    """Read a ResourceClaim's allocation.

    Args:
        found: The API server's current object; None if there is none.
        wanted: The claim that the kubelet names.
        pools: The pools whose devices this node can prepare, beside the shared ones. A node's pool
            includes the pools of its Configurations.
    """
    if found is None:
        return Failure(f"ResourceClaim {wanted} does not exist")
    claim = read_as(FullClaim, found)
    if claim.uid != wanted.uid:
        return Failure(f"ResourceClaim {wanted} was replaced by one with UID {claim.uid}")
    if not claim.is_allocated:
        return Failure(f"ResourceClaim {wanted} is not allocated")
    configs = ClaimConfigs(claim)
    ours = (result for result in claim.results if result.driver == DRIVER_NAME)
    devices = tuple(_allocated_device(result, configs) for result in ours)
    if not devices:
        return Failure(f"ResourceClaim {wanted} has no device of {DRIVER_NAME}")
    others = {device.pool for device in devices if not is_shared_pool(device.pool)}
    if foreign := sorted(p for p in others if not any(is_pool_of(own, p) for own in pools)):
        return Failure(
            f"ResourceClaim {wanted} has devices of other nodes' pools: {', '.join(foreign)}"
        )
    if configs.problems:
        return Failure(" ".join(map(str, dict.fromkeys(configs.problems))))
    annotations = (claim.metadata or NO_METADATA).annotations or {}
    return AllocatedClaim(wanted, devices, annotations.get(POD_CLAIM, ""))


def consumers(claim: FullClaim) -> tuple[str, ...]:
    """UIDs of the pods that a ResourceClaim is reserved for; the kubelet does not name the pod."""
    return tuple(found.uid for found in claim.consumers if found.is_pod)


def consumer_groups(claim: FullClaim) -> tuple[str, ...]:
    """Names of the PodGroups that a ResourceClaim is reserved for, in place of their pods."""
    return tuple(found.name or "" for found in claim.consumers if found.is_pod_group)


def is_reserved_for(claim: FullClaim, pod: Pod) -> bool:
    """Whether a ResourceClaim is reserved for a pod, or for the PodGroup of a pod that names it.

    The kubelet compares the name of the PodGroup, too, and not its UID.
    """
    if pod.metadata.uid in consumers(claim):
        return True
    own, metadata = pod.metadata, claim.metadata or NO_METADATA
    is_named = own.namespace == metadata.namespace and (metadata.name or "") in pod.claim_names
    group = ((pod.spec or NO_SPEC).scheduling_group or NO_GROUP).pod_group_name
    return is_named and bool(group) and group in consumer_groups(claim)


def _allocated_device(result: AllocationResult, configs: ClaimConfigs) -> AllocatedDevice:
    request = result.request or ""
    return AllocatedDevice(
        request=request.partition("/")[0],
        pool=result.pool or "",
        device=DeviceName(result.device or ""),
        share_id=result.share_id,
        admin_access=bool(result.admin_access),
        config=configs.of(request),
    )


def is_prepared(claim: AllocatedClaim, prepared: PreparedClaims) -> bool:
    """Whether the claim is prepared with this allocation, so that no device is read."""
    known = prepared.get(claim.reference.uid)
    return known is not None and known.allocation == frozenset(claim.devices)


def plan_prepare(
    claim: AllocatedClaim,
    instances: Instances,
    prepared: PreparedClaims,
    boot_id: str,
    refuse_mount: RefuseMount = no_mounts,
) -> PreparedClaim | Failure:
    """The plan for a claim; `renewals` keep a prepared claim up to date.

    A claim is planned again if it was allocated anew, or if an earlier driver prepared it without
    its device configs. `boot_id` is the current one.
    """
    if is_prepared(claim, prepared):
        return as_prepared(prepared[claim.reference.uid])
    others = (other for uid, other in prepared.items() if uid != claim.reference.uid)
    if conflict := conflict_of(claim.devices, instances, others):
        return Failure(conflict)
    devices: list[PreparedDevice] = []
    given: list[tuple[AllocatedDevice, Instance]] = []
    for allocated in claim.devices:
        instance = _given(allocated, instances, refuse_mount)
        if isinstance(instance, str):
            return Failure(f"device {allocated} {instance}")
        given.append((allocated, instance))
        name = _cdi_name(claim.reference.uid, allocated)
        devices.append(prepared_device(allocated, name, instance))
    if clashing := _clash(given):
        return Failure(clashing)
    return PreparedClaim(
        reference=claim.reference,
        boot_id=boot_id,
        devices=in_order(devices),
        pod_claim=claim.pod_claim,
    )


def _given(
    allocated: AllocatedDevice, instances: Instances, refuse_mount: RefuseMount
) -> Instance | str:
    """A device with its config applied, or the end of a sentence: why the claim cannot have it."""
    instance = instances.get((allocated.pool, allocated.device))
    if instance is None:
        return "is not known on this node"
    if not instance.online:
        return "is offline"
    return unusable(instance) or configured(instance, allocated.config, refuse_mount)


def _clash(given: Sequence[tuple[AllocatedDevice, Instance]]) -> str:
    """A conflict of paths among devices of one request, which one container gets; "" for none."""
    for request in dict.fromkeys(device.request for device, _ in given):
        named = [(f"device {d}", instance) for d, instance in given if d.request == request]
        if clashing := clash(named):
            return clashing
    return ""


def as_prepared(claim: PreparedClaim) -> PreparedClaim | Failure:
    """The answer to the kubelet: the claim, or a Failure for its withheld device."""
    for device in claim.devices:
        if device.withheld:
            return Failure(f"device {device.allocated} {device.withheld}")
    return claim


def unusable(instance: Instance) -> str:
    """Why the runtime would refuse the device, and so all of the claim; "" if it would not."""
    items: tuple[tuple[str, DeviceSpec | Mount], ...] = (
        *(("device node", spec) for spec in instance.device_specs),
        *(("mount", mount) for mount in instance.mounts),
    )
    for kind, item in items:
        for place, path in (
            ("on the host", item.host_path),
            ("in the container", item.container_path),
        ):
            if not path.startswith("/"):
                return f"has a {kind} whose path {place}, {shown(path)}, is not absolute"
    for spec in instance.device_specs:
        if not PERMISSIONS.fullmatch(spec.permissions):
            given = shown(spec.permissions)
            why = "which are not some of rwm, such as r or rw"
            return f"has the device node {shown(spec.host_path)} with permissions {given}, {why}"
    return ""


def clash(named: Iterable[tuple[str, Instance]]) -> str:
    """A sentence: which two paths of the host have one path in a container; "" for none.

    Args:
        named: The devices of a container, each with its name for the sentence.
    """
    places: dict[str, tuple[str, str]] = {}
    for name, instance in named:
        items: tuple[DeviceSpec | Mount, ...] = (*instance.device_specs, *instance.mounts)
        for item in items:
            host_path, first = places.setdefault(item.container_path, (item.host_path, name))
            if host_path != item.host_path:
                return (
                    f"{host_path} of {first} and {item.host_path} of {name} would both be"
                    f" {item.container_path} in the container"
                )
    return ""


def prepared_device(
    allocated: AllocatedDevice, cdi_name: str, instance: Instance
) -> PreparedDevice:
    """An allocated device with the current data of its Instance, config applied."""
    return PreparedDevice(
        allocated=allocated,
        cdi_name=cdi_name,
        instance=instance.name,
        hash=instance.hash,
        properties=for_containers(instance.properties),
        mounts=instance.mounts,
        device_specs=instance.device_specs,
        digest=instance.device,
        nodes=instance.nodes,
        capacity=instance.capacity,
    )


def _cdi_name(uid: ClaimUid, allocated: AllocatedDevice) -> str:
    """A name that is unique on the node: only the pool may have a `/`, and no part has a `_`.

    It identifies the device, not its index in a list: the kubelet may keep an id after the
    allocation has ended, and must then find no device instead of another one.
    """
    pool = allocated.pool.replace("/", ":")
    parts = (uid, allocated.request, pool, allocated.device, allocated.share_id)
    return "_".join(part for part in parts if part)


def in_order(devices: Iterable[PreparedDevice]) -> tuple[PreparedDevice, ...]:
    """Sorted by Instance, the first name last: of two variables with one name the later one stays.

    Within a claim the kubelet passes CDI ids in the order of the answer, and the runtime applies
    them in that order. The driver cannot decide the order of several claims of a container, nor of
    requests that the container lists one by one.
    """
    return tuple(sorted(devices, key=lambda d: (d.instance, d.cdi_name), reverse=True))
