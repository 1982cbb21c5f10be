"""Notices: what the pods of a prepared claim are told when its devices change.

    Renewals, Whereabouts ──notices──► Notice ──pods_of──► the pods that it is for

Containers that run keep what they were started with; nobody can take it from them. So their pods
are told what they hold, and whose that is now.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from driver.devices import DeviceSpec
from driver.preparing.files.prepared import ClaimReference, PreparedClaim, PreparedDevice
from driver.preparing.grants.former_paths import ANEW, held_sentence, latest_of
from driver.preparing.grants.rival_claims import Renewal
from driver.preparing.grants.whereabouts import Whereabouts

_FINISHED = frozenset({"Succeeded", "Failed"})


@dataclass(frozen=True, slots=True)
class Notice:
    """What the pods of a claim are told.

    Attributes:
        reason: Of the Event.
        sentence: Names the device, and what containers hold; properties by name only, since their
            values may be secrets.
        is_warning: Whether containers may hold what is not their device.
    """

    claim: ClaimReference
    reason: str
    sentence: str
    is_warning: bool = True


def change_notices(renewals: Iterable[Renewal], where: Whereabouts) -> tuple[Notice, ...]:
    """What changed, a notice for each device."""
    return tuple(
        notice
        for renewal in renewals
        for before, after in _pairs(renewal)
        if (notice := _change(renewal.after.reference, before, after, where))
    )


def taken_notices(claims: Iterable[PreparedClaim], where: Whereabouts) -> frozenset[Notice]:
    """Paths that containers may hold from before, and that are other devices' now.

    The same for as long as that lasts; each is to be told once.
    """
    return frozenset(
        Notice(
            claim.reference,
            "DevicePathTaken",
            f"{path} is Instance {owner}'s now. Containers that were started when device"
            f" {device.allocated} was there hold it: start them anew.",
        )
        for claim in claims
        for device in claim.devices
        for path in device.left
        if (owner := where.owner(path))
    )


def _pairs(renewal: Renewal) -> Iterator[tuple[PreparedDevice, PreparedDevice]]:
    before = {device.cdi_name: device for device in renewal.before.devices}
    for device in renewal.after.devices:
        if device.cdi_name in before and before[device.cdi_name] != device:
            yield before[device.cdi_name], device


def _change(
    claim: ClaimReference, before: PreparedDevice, after: PreparedDevice, where: Whereabouts
) -> Notice | None:
    name = f"Device {after.allocated}"
    if after.withheld and not before.withheld:
        sentence = f"{name} {after.withheld}: no container is started with it until it is back."
        return Notice(claim, "DeviceAway", sentence + _held(before, after, where, "."))
    if before.withheld and not after.withheld:
        sentence = f"{name} is back{_places('at', after)}." + _held(before, after, where)
        return Notice(claim, "DeviceBack", sentence, is_warning=bool(after.left))
    if _has_moved(before, after):
        sentence = f"{name} moved{_places('to', after)}." + _held(before, after, where)
        return Notice(claim, "DeviceMoved", sentence)
    if changed := _changed(before.properties, after.properties):
        sentence = f"{name} changed: containers that run have its old {', '.join(changed)}."
        return Notice(claim, "DeviceChanged", sentence)
    return None


def _has_moved(before: PreparedDevice, after: PreparedDevice) -> bool:
    """Not where a link became the node that it leads to, see `rival_claims.left`."""
    pairs = tuple(zip(before.device_specs, after.device_specs, strict=False))
    is_same = len(before.device_specs) == len(after.device_specs) and all(
        old == new or (replace(old, host_path=new.host_path) == new and _is_link(old, after))
        for old, new in pairs
    )
    return not is_same


def _is_link(old: DeviceSpec, after: PreparedDevice) -> bool:
    return old.host_path not in after.left and old.host_path not in after.paths


def _places(word: str, device: PreparedDevice) -> str:
    return f" {word} {', '.join(device.paths)}" if device.paths else ""


def _held(
    before: PreparedDevice, after: PreparedDevice, where: Whereabouts, end: str = ANEW
) -> str:
    """What containers hold that run since before."""
    latest = latest_of(after.left, before.paths, len(after.paths))
    return held_sentence(latest, after.left, where.owner, end)


def _changed(before: Mapping[str, str], after: Mapping[str, str]) -> list[str]:
    return sorted(n for n in before.keys() | after.keys() if before.get(n) != after.get(n))


def pods_of(
    pods: Iterable[Mapping[str, Any]], claim: ClaimReference
) -> tuple[Mapping[str, Any], ...]:
    """The pods, of these, whose containers may have the claim's devices."""
    return tuple(
        pod
        for pod in pods
        if pod["metadata"]["namespace"] == claim.namespace
        and claim.name in _claim_names(pod)
        and (pod.get("status") or {}).get("phase") not in _FINISHED
    )


def _claim_names(pod: Mapping[str, Any]) -> frozenset[str | None]:
    spec, status = pod["spec"], pod.get("status") or {}
    named = (*(spec.get("resourceClaims") or ()), *(status.get("resourceClaimStatuses") or ()))
    extended = status.get("extendedResourceClaimStatus") or {}
    names = (claim.get("resourceClaimName") for claim in (*named, extended))
    return frozenset(names) - {None}
