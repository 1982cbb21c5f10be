"""Who holds a Lease, and for how long, judged without comparing clocks of different hosts.

A Lease says when its holder renewed it, in the holder's own time. Whoever watches it notes
instead, in its own time, when it *saw* a renewal (as client-go's leader election does). With
two polls around a renewal its moment lies between two moments of the watcher's own clock:

    asked, old version shown ──── the renewal ──── answered, new version shown
    │ renewed_after                                          seen_at │

Nobody can take the Lease before renewed_after + duration; whoever waits until
seen_at + duration may. What follows a holder uses the first, what succeeds it the second.
"""

from dataclasses import dataclass, replace
from datetime import datetime

from kube.kinds import LEASES
from kube.objects import JsonObject
from kube.resources import ObjectPath
from kube.shapes.leases import Lease
from kube.shapes.times import micro_time


@dataclass(frozen=True, slots=True)
class Sighting:
    """A version of a Lease, and between which moments of the own clock it was written.

    checked_at: when the last poll that showed this version was sent.
    """

    lease: Lease
    renewed_after: float
    seen_at: float
    checked_at: float


@dataclass(frozen=True, slots=True)
class LeaseView:
    """Who holds a Lease, and the bounds of the time that it has left.

    at_least_seconds: nobody else can have taken it before; 0 if that is not certain.
    at_most_seconds: after that it has expired for certain, unless it is renewed.
    """

    holder: str
    at_least_seconds: float
    at_most_seconds: float


def see(before: Sighting | None, lease: Lease, *, asked_at: float, now: float) -> Sighting:
    """Take the answer to a poll that was sent at `asked_at`."""
    if before is None:
        # It may have been written any time ago.
        return Sighting(lease, float("-inf"), now, asked_at)
    if lease == before.lease:
        return Sighting(lease, before.renewed_after, before.seen_at, asked_at)
    return Sighting(lease, before.checked_at, now, asked_at)


def view(sighting: Sighting | None, *, now: float) -> LeaseView:
    """What is certain at this moment; nobody's, if the Lease was never seen."""
    if sighting is None or not sighting.lease.holder:
        return LeaseView("", 0.0, 0.0)
    lease = sighting.lease
    at_least = sighting.renewed_after + lease.duration_seconds - now
    at_most = sighting.seen_at + lease.duration_seconds - now
    return LeaseView(lease.holder, max(0.0, at_least), max(0.0, at_most))


def taken(sighting: Sighting | None, lease: Lease, *, now: float) -> Lease | None:
    """What a candidate may write; None while somebody else holds the Lease.

    Args:
        sighting: None if there is no Lease.
        lease: What the candidate writes where there is none.
        now: The moment.
    """
    if sighting is None:
        return lease
    before = sighting.lease
    if before.holder == lease.holder:
        acquired = before.acquire_time or lease.acquire_time
        return replace(lease, transitions=before.transitions, acquire_time=acquired)
    if view(sighting, now=now).at_most_seconds > 0:
        return None
    return replace(lease, transitions=before.transitions + 1)


def lease_body(path: ObjectPath, lease: Lease) -> JsonObject:
    return {
        "apiVersion": LEASES.api_version,
        "kind": "Lease",
        "metadata": {"name": path.name, "namespace": path.namespace},
        "spec": {
            "holderIdentity": lease.holder,
            "leaseDurationSeconds": round(lease.duration_seconds),
            "acquireTime": lease.acquire_time or None,
            "renewTime": lease.renew_time or None,
            "leaseTransitions": lease.transitions,
        },
    }


def released(lease: Lease, now: datetime) -> Lease:
    """Return what the holder writes when it leaves: nobody's, and expired at once."""
    text = micro_time(now)
    return replace(lease, holder="", duration_seconds=1, renew_time=text, acquire_time=text)
