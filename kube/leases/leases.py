"""The holder of a Lease and the remaining time, without comparing clocks of different hosts.

A Lease has the time of its renewal on the holder's clock. An observer uses the time on its own
clock at which it *saw* the renewal (as client-go's leader election does). Two polls around a
renewal bound its time by two times of the observer's clock:

    asked, old version shown ──── the renewal ──── answered, new version shown
    │ renewed_after                                          seen_at │

No candidate can take the Lease before renewed_after + duration; every candidate may after
seen_at + duration. A process that relies on the holder uses the first, a candidate the second.
"""

from dataclasses import dataclass, replace
from datetime import datetime

from kube.kinds import LEASES
from kube.objects import JsonObject
from kube.resources import ObjectPath
from kube.shapes.leases import Lease
from kube.shapes.times import micro_time


@dataclass(frozen=True, slots=True)
class Observation:
    """A version of a Lease, and the bounds of the time at which it was written, on the own clock.

    checked_at: when the last poll that showed this version was sent.
    """

    lease: Lease
    renewed_after: float
    seen_at: float
    checked_at: float


@dataclass(frozen=True, slots=True)
class LeaseView:
    """The holder of a Lease, and the bounds of its remaining time.

    at_least_seconds: no other candidate can take the Lease before; 0 if that is not certain.
    at_most_seconds: after this time the Lease has expired, unless it is renewed.
    """

    holder: str
    at_least_seconds: float
    at_most_seconds: float


def observe(
    before: Observation | None, lease: Lease, *, asked_at: float, now: float
) -> Observation:
    """The observation after a poll that was sent at `asked_at`."""
    if before is None:
        # The time of the renewal has no lower bound.
        return Observation(lease, float("-inf"), now, asked_at)
    if lease == before.lease:
        return Observation(lease, before.renewed_after, before.seen_at, asked_at)
    return Observation(lease, before.checked_at, now, asked_at)


def view(observation: Observation | None, *, now: float) -> LeaseView:
    """What is certain at this time; without a holder if the Lease was never seen."""
    if observation is None or not observation.lease.holder:
        return LeaseView("", 0.0, 0.0)
    lease = observation.lease
    at_least = observation.renewed_after + lease.duration_seconds - now
    at_most = observation.seen_at + lease.duration_seconds - now
    return LeaseView(lease.holder, max(0.0, at_least), max(0.0, at_most))


def taken(observation: Observation | None, lease: Lease, *, now: float) -> Lease | None:
    """What a candidate may write; None while another candidate holds the Lease.

    Args:
        observation: None if there is no Lease.
        lease: What the candidate writes if there is none.
        now: The current time of the own clock.
    """
    if observation is None:
        return lease
    before = observation.lease
    if before.holder == lease.holder:
        acquired = before.acquire_time or lease.acquire_time
        return replace(lease, transitions=before.transitions, acquire_time=acquired)
    if view(observation, now=now).at_most_seconds > 0:
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
    """Return what the holder writes to release the Lease: no holder, and expired at once."""
    text = micro_time(now)
    return replace(lease, holder="", duration_seconds=1, renew_time=text, acquire_time=text)
