"""The fields of a Lease."""

from __future__ import annotations

from dataclasses import dataclass

from kube.objects import JsonObject


@dataclass(frozen=True, slots=True, kw_only=True)
class Lease:
    """The spec of a Lease; two are equal if the Lease was not written in between."""

    holder: str
    duration_seconds: float
    renew_time: str = ""
    acquire_time: str = ""
    transitions: int = 0


def parse_lease(obj: JsonObject) -> Lease:
    """Return the spec of a Lease; absent or empty fields count as not held."""
    spec = obj.get("spec") or {}
    return Lease(
        holder=spec.get("holderIdentity") or "",
        duration_seconds=float(spec.get("leaseDurationSeconds") or 0),
        renew_time=spec.get("renewTime") or "",
        acquire_time=spec.get("acquireTime") or "",
        transitions=int(spec.get("leaseTransitions") or 0),
    )
