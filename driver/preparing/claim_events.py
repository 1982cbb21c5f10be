"""Events on the pods of a prepared claim when its devices change.

Renewals, DeviceLocator ──change_events──► ClaimEvent ──pods_of──► the pods that it is for
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace

from driver.devices import DeviceSpec
from driver.preparing.files.prepared import ClaimReference, PreparedClaim, PreparedDevice
from driver.preparing.grants.device_events import DeviceEvent, Given, event_of, path_taken
from driver.preparing.grants.device_locators import DeviceLocator
from driver.preparing.grants.rival_claims import Renewal
from kube.shapes.pods import Pod
from kube.shapes.reading import JsonObject, read_as

ClaimEvent = tuple[ClaimReference, DeviceEvent]
"""A claim, and the Event for its pods."""


def change_events(renewals: Iterable[Renewal], where: DeviceLocator) -> tuple[ClaimEvent, ...]:
    """An Event for each changed device."""
    return tuple(
        (renewal.after.reference, event)
        for renewal in renewals
        for before, after in _pairs(renewal)
        if (event := _change(before, after, where))
    )


def taken_events(claims: Iterable[PreparedClaim], where: DeviceLocator) -> frozenset[ClaimEvent]:
    """Events about former paths, which containers may hold, that lead to other devices now.

    The result stays the same as long as that lasts; the caller reports each Event once.
    """
    return frozenset(
        (claim.reference, path_taken(f"device {device.allocated}", path, owner))
        for claim in claims
        for device in claim.devices
        for path in device.former_paths
        if (owner := where.owner(path))
    )


def _pairs(renewal: Renewal) -> Iterator[tuple[PreparedDevice, PreparedDevice]]:
    before = {device.cdi_name: device for device in renewal.before.devices}
    for device in renewal.after.devices:
        if device.cdi_name in before and before[device.cdi_name] != device:
            yield before[device.cdi_name], device


def _change(
    before: PreparedDevice, after: PreparedDevice, where: DeviceLocator
) -> DeviceEvent | None:
    return event_of(
        f"Device {after.allocated}",
        _given(before),
        _given(after),
        where.owner,
        has_moved=_has_moved(before, after),
    )


def _given(device: PreparedDevice) -> Given:
    return Given(device.paths, device.properties, device.withheld, device.former_paths)


def _has_moved(before: PreparedDevice, after: PreparedDevice) -> bool:
    """Whether its device nodes changed; a link that was replaced by its target does not count."""
    pairs = tuple(zip(before.device_specs, after.device_specs, strict=False))
    is_same = len(before.device_specs) == len(after.device_specs) and all(
        old == new or (replace(old, host_path=new.host_path) == new and _is_link(old, after))
        for old, new in pairs
    )
    return not is_same


def _is_link(old: DeviceSpec, after: PreparedDevice) -> bool:
    return old.host_path not in after.former_paths and old.host_path not in after.paths


def pods_of(pods: Iterable[JsonObject | Pod], claim: ClaimReference) -> tuple[Pod, ...]:
    """Those of `pods` whose containers may have the claim's devices."""
    return tuple(
        pod
        for pod in (read_as(Pod, each) for each in pods)
        if pod.metadata.namespace == claim.namespace
        and claim.name in pod.claim_names
        and not pod.has_ended
    )
