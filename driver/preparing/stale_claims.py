"""Stale claims: those that are prepared, and that no pod of this node has any more.

    PreparedClaim, Home, Evidence ──staleness──► Staleness: why, and after what time | None

A kubelet that lost its state never asks to unprepare what it forgot, and CDI files outlive a
cluster that is made anew without a reboot. Their claims would keep devices from all others. But a
container may run for a while after its pod and claim are gone from the API. So what is in doubt
stays. Of claims whose CDI file is gone, see `lost_claims`.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import timedelta

from driver.api import DRIVER_NAME, ClaimUid
from driver.preparing.files.cdi import KIND
from driver.preparing.files.prepared import ClaimReference, Home, PreparedClaim
from kube.shapes.full_claims import FullClaim
from kube.shapes.reading import JsonObject, read_as

NODE_GRACE = timedelta(minutes=1)
"""For claims of a former Node object: a kubelet that has just started does not list all pods."""

_DEVICE = f"{KIND}="


@dataclass(frozen=True, slots=True)
class Listing:
    """The claims that the kubelet lists in pod-resources.

    Attributes:
        names: Namespace and name of each.
        uids: As its CDI devices say; those of an older kubelet say nothing.
    """

    names: frozenset[tuple[str, str]]
    uids: frozenset[ClaimUid]

    def has(self, claim: ClaimReference) -> bool:
        """Whether a pod may use it; a later claim of the same name counts, too."""
        return claim.uid in self.uids or (claim.namespace, claim.name) in self.names


def uids_of(cdi_devices: Iterable[str]) -> frozenset[ClaimUid]:
    """The claims that CDI devices are of, by the devices' names."""
    ours = (name.removeprefix(_DEVICE) for name in cdi_devices if name.startswith(_DEVICE))
    return frozenset(ClaimUid(name.partition("_")[0]) for name in ours)


@dataclass(frozen=True, slots=True)
class Evidence:
    """What speaks for a claim now; None where it could not be asked.

    Attributes:
        is_listed: The kubelet lists it.
        exists: The API server has it, with its UID.
        is_named: A pod that is bound to the node and has not ended names it.
        is_allocated: The API server's has one of the devices that are prepared.
    """

    is_listed: bool | None = None
    exists: bool | None = None
    is_named: bool | None = None
    is_allocated: bool | None = None


@dataclass(frozen=True, slots=True)
class Staleness:
    """Why a claim is stale, as the end of a sentence, and for how long it must have been so."""

    why: str
    grace: timedelta


def staleness(
    claim: PreparedClaim, home: Home, evidence: Evidence, grace: timedelta
) -> Staleness | None:
    """Whether a claim is stale; None while anything speaks for it, or cannot be asked.

    Args:
        claim: One that is prepared in this boot.
        home: This node and cluster.
        evidence: What was found out.
        grace: For a claim that the API server does not have.
    """
    if is_of_other_cluster(claim, home):
        return Staleness("it is of another cluster, which this node was part of", timedelta())
    if evidence.is_listed is not False or evidence.is_named is not False:
        return None
    if claim.home.node not in ("", home.node):
        why = "it is of a former Node object, and the kubelet does not list it"
        return Staleness(why, min(NODE_GRACE, grace))
    if evidence.exists is False:
        why = "the API server does not have it, and neither the kubelet nor a pod names it"
        return Staleness(why, grace)
    if evidence.is_allocated is False:
        why = "it has its devices no more, and neither the kubelet nor a pod names it"
        return Staleness(why, grace)
    return None


def is_of_other_cluster(claim: PreparedClaim, home: Home) -> bool:
    """Whether it was prepared when the node was part of another cluster."""
    return claim.home.cluster not in ("", home.cluster)


def is_allocated(claim: PreparedClaim, found: JsonObject | FullClaim) -> bool:
    """Whether the API server's claim has any device that is prepared; True where none is known."""
    results = read_as(FullClaim, found).results
    devices = {result.device for result in results if result.driver == DRIVER_NAME}
    return not claim.devices or any(d.allocated.device in devices for d in claim.devices)
