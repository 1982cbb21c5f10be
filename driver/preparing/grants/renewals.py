"""Renewals: prepared claims are planned anew whenever the devices of the node change.

    PreparedClaims, DeviceLocator ──renew──► the changed claims

A container that starts gets its claim's device at its current location, or does not start:

    the device          what its claim's containers get from then on
    is reported         what its Instance has
    is absent           nothing: it is withheld. A device that several nodes see, and that has
                        no nodes or mounts of this host, keeps its address, and the application
                        waits for it
    is unknown          what they got before
    ... and another device of its Configuration has its location: nothing, it is withheld
    ... and it no longer fits the claim's DeviceConfig: nothing, it is withheld
    is another claim's by now, through another Configuration: nothing, see `rival_claims`

Running containers are not changed; `claim_events` reports what they hold.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, replace

from driver.api import ClaimUid
from driver.instances.instances import Instance
from driver.names import is_shared_pool
from driver.preparing.files.prepared import PreparedClaim, PreparedClaims, PreparedDevice
from driver.preparing.grants.claims import in_order, prepared_device, unusable
from driver.preparing.grants.configured import RefuseMount, configured, no_mounts
from driver.preparing.grants.device_locators import OFFLINE, DeviceLocator, previous_location
from driver.preparing.grants.rival_claims import Renewal, former_paths, withheld, without_rivals

Resolve = Callable[[str], str]
"""path → its target on the host."""


@dataclass(frozen=True, slots=True)
class OnHost:
    """Checks of paths in the node's file system."""

    resolve: Resolve
    refuse_mount: RefuseMount


def concerned(
    claims: PreparedClaims, where: DeviceLocator, before: DeviceLocator
) -> frozenset[ClaimUid]:
    """The claims that may have changed since all of them were up to date with `before`.

    A link may lead elsewhere without an event. So a device that is reported at a link may always
    have changed, and so may a withheld or unreported device.
    """
    return frozenset(
        uid
        for uid, claim in claims.items()
        if any(_is_concerned(device, where, before) for device in claim.devices)
    )


def _is_concerned(device: PreparedDevice, where: DeviceLocator, before: DeviceLocator) -> bool:
    instance = where.find(device)
    if instance is None or device.withheld or instance is not before.find(device):
        return True
    return device.paths != tuple(spec.host_path for spec in instance.device_specs)


def renew(
    claims: PreparedClaims,
    where: DeviceLocator,
    resolve: Resolve,
    refuse_mount: RefuseMount = no_mounts,
    only: Collection[ClaimUid] | None = None,
) -> Mapping[ClaimUid, Renewal]:
    """The changed claims; claims without withheld devices come last.

    Args:
        claims: All prepared claims.
        where: The current locations of devices.
        resolve: Returns the target of a path of the host.
        refuse_mount: Returns why a path may not be mounted.
        only: The claims that may change, see `concerned`; None for all.
    """
    on_host = OnHost(resolve, refuse_mount)
    renewals = [
        Renewal(claim, renewed(claim, where, on_host) if only is None or uid in only else claim)
        for uid, claim in claims.items()
    ]
    changed = [
        each
        for each in without_rivals(renewals)
        if each.after is not each.before and each.after != each.before
    ]
    changed.sort(key=lambda renewal: not _is_withheld(renewal.after))
    return {renewal.before.reference.uid: renewal for renewal in changed}


def _is_withheld(claim: PreparedClaim) -> bool:
    return any(device.withheld for device in claim.devices)


def renewed(claim: PreparedClaim, where: DeviceLocator, on_host: OnHost) -> PreparedClaim:
    """A claim with the current locations of its devices."""
    devices = [_renewed_device(device, where, on_host) for device in claim.devices]
    return replace(claim, devices=in_order(devices))


def _renewed_device(
    device: PreparedDevice, where: DeviceLocator, on_host: OnHost
) -> PreparedDevice:
    instance = where.find(device)
    if instance is None:
        return _absent(_without_denied(device, where), where)
    if problem := unusable(instance):
        return withheld(device, problem)
    found = with_real_paths(instance, on_host.resolve)
    as_asked = configured(found, device.allocated.config, on_host.refuse_mount)
    if isinstance(as_asked, str):
        return withheld(device, as_asked)
    after = prepared_device(device.allocated, device.cdi_name, as_asked)
    return replace(after, former_paths=former_paths(device, after, on_host.resolve))


def with_real_paths(instance: Instance, resolve: Resolve) -> Instance:
    """Replace links such as those in `/dev/serial/by-id`: a CDI device node must not be one."""
    specs = tuple(replace(s, host_path=resolve(s.host_path)) for s in instance.device_specs)
    return instance if specs == instance.device_specs else replace(instance, device_specs=specs)


def _absent(device: PreparedDevice, where: DeviceLocator) -> PreparedDevice:
    why = where.why_withheld(previous_location(device), is_address=_is_only_an_address(device))
    if not why:
        return device
    return withheld(device, device.withheld or why if why == OFFLINE else why)


def _without_denied(device: PreparedDevice, where: DeviceLocator) -> PreparedDevice:
    """A device without denied environment, which an earlier driver may have prepared."""
    return replace(device, properties=where.rules.passed(device.properties))


def _is_only_an_address(device: PreparedDevice) -> bool:
    is_of_host = device.device_specs or device.mounts or device.withheld
    return is_shared_pool(device.allocated.pool) and not is_of_host
