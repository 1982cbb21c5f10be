"""Rival claims: prepared claims whose devices become one device, through two Configurations.

    renewals ──without_rivals──► renewals that give no device to two claims

Devices of two Configurations with different identities may become one device while both are
prepared: a disk with a serial number is plugged in at the place that identifies the other device.
The first claim keeps the device. It is withheld from the other claim, and checked again at each
renewal.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

from driver.instances.rivals import shown_first
from driver.preparing.files.prepared import ClaimReference, PreparedClaim, PreparedDevice


@dataclass(frozen=True, slots=True)
class Renewal:
    """A claim before and after it was planned anew."""

    before: PreparedClaim
    after: PreparedClaim


class _Holders:
    """The claims that have device nodes now; withheld and admin-access devices have none."""

    def __init__(self, claims: Iterable[PreparedClaim]) -> None:
        self._held: dict[str, dict[tuple[ClaimReference, str], PreparedDevice]] = defaultdict(dict)
        for claim in claims:
            for device in claim.devices:
                for node in _nodes(device):
                    self._held[node][claim.reference, device.cdi_name] = device

    def remove(self, claim: ClaimReference, device: PreparedDevice) -> None:
        for node in _nodes(device):
            self._held[node].pop((claim, device.cdi_name), None)

    def rival(self, claim: ClaimReference, device: PreparedDevice) -> str:
        """The end of a sentence: which other claim has the device, too; "" for none."""
        for node in sorted(_nodes(device), key=shown_first):
            for (other, _), held in self._held[node].items():
                shared = held.is_shareable and device.is_shareable
                if other != claim and held.configuration != device.configuration and not shared:
                    return (
                        f"is at {node}, as is device {held.allocated} of Configuration"
                        f" {held.configuration}, which ResourceClaim {other} has"
                    )
        return ""


def _nodes(device: PreparedDevice) -> frozenset[str]:
    return frozenset() if device.withheld or device.allocated.admin_access else device.nodes


def without_rivals(renewals: Sequence[Renewal]) -> Iterator[Renewal]:
    """The renewals, with devices withheld that another claim has."""
    if not any(_gained(renewal) for renewal in renewals):
        yield from renewals
        return
    holders = _Holders(renewal.after for renewal in renewals)
    for renewal in renewals:
        rivals = dict(_rivals(renewal, holders))
        yield _without(renewal, rivals) if rivals else renewal


def _gained(renewal: Renewal) -> tuple[PreparedDevice, ...]:
    """The devices that have new device nodes."""
    if renewal.after is renewal.before:
        return ()
    before = {device.cdi_name: _nodes(device) for device in renewal.before.devices}
    after = renewal.after.devices
    return tuple(d for d in after if _nodes(d) - before.get(d.cdi_name, frozenset()))


def _rivals(renewal: Renewal, holders: _Holders) -> Iterator[tuple[str, str]]:
    claim = renewal.after.reference
    for device in _gained(renewal):
        if why := holders.rival(claim, device):
            holders.remove(claim, device)
            yield device.cdi_name, why


def _without(renewal: Renewal, rivals: dict[str, str]) -> Renewal:
    before = {device.cdi_name: device for device in renewal.before.devices}
    devices = tuple(
        withheld(before.get(d.cdi_name, d), rivals[d.cdi_name]) if d.cdi_name in rivals else d
        for d in renewal.after.devices
    )
    return replace(renewal, after=replace(renewal.after, devices=devices))


def withheld(device: PreparedDevice, why: str) -> PreparedDevice:
    """A device that no container gets now, with the reason."""
    after = replace(device, device_specs=(), mounts=(), withheld=why)
    return replace(after, former_paths=former_paths(device, after))


def _as_it_is(path: str) -> str:
    return path


def former_paths(
    before: PreparedDevice, after: PreparedDevice, resolve: Callable[[str], str] = _as_it_is
) -> tuple[str, ...]:
    """The former paths of a device, the oldest first, without its current paths.

    A link to a current path is not a former path: an earlier driver wrote links, and the runtime
    followed them.
    """
    paths = dict.fromkeys((*before.former_paths, *before.paths))
    return tuple(p for p in paths if p not in after.paths and resolve(p) not in after.paths)
