"""What a Lease says, as the API writes it."""

from __future__ import annotations

from dataclasses import dataclass

from kube.objects import JsonObject


@dataclass(frozen=True, slots=True, kw_only=True)
class Lease:
    """What a Lease says; two are equal if nobody wrote to it in between."""

    holder: str
    duration_seconds: float
    renew_time: str = ""
    acquire_time: str = ""
    transitions: int = 0


def parse_lease(obj: JsonObject) -> Lease:
    """Return what a Lease says; fields that are absent or odd count as not held."""
    spec = obj.get("spec") or {}
    return Lease(
        holder=spec.get("holderIdentity") or "",
        duration_seconds=float(spec.get("leaseDurationSeconds") or 0),
        renew_time=spec.get("renewTime") or "",
        acquire_time=spec.get("acquireTime") or "",
        transitions=int(spec.get("leaseTransitions") or 0),
    )
