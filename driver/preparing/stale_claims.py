"""Stale claims: prepared claims that no pod of this node uses any more.

    PreparedClaim, Home, Evidence ──staleness──► Staleness: why, and after what time | None

A kubelet that lost its state never unprepares the claims that it forgot. CDI files also remain if
the cluster is created anew without a reboot. Such claims would block their devices. But a container
may still run after its pod and claim were deleted from the API. So a claim stays in case of doubt.
For claims whose CDI files are missing see `lost_claims`.
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
"""Grace of claims of a former Node object: a kubelet that just started lists not all pods yet."""

_DEVICE = f"{KIND}="


@dataclass(frozen=True, slots=True)
class Listing:
    """The claims that the kubelet lists in pod-resources.

    Attributes:
        names: Namespace and name of each.
        uids: UIDs in the names of its CDI devices; an older kubelet lists none.
    """

    names: frozenset[tuple[str, str]]
    uids: frozenset[ClaimUid]

    def has(self, claim: ClaimReference) -> bool:
        """Whether a pod may use the claim; a later claim of the same name counts, too."""
        return claim.uid in self.uids or (claim.namespace, claim.name) in self.names


def uids_of(cdi_devices: Iterable[str]) -> frozenset[ClaimUid]:
    """The claims of CDI devices, from the names of the devices."""
    ours = (name.removeprefix(_DEVICE) for name in cdi_devices if name.startswith(_DEVICE))
    return frozenset(ClaimUid(name.partition("_")[0]) for name in ours)


@dataclass(frozen=True, slots=True)
class Evidence:
    """Facts about the use of a claim; None for an unknown one.

    Attributes:
        is_listed: The kubelet lists it.
        exists: The API server has it, with its UID.
        is_named: A pod that is bound to the node and has not ended names it.
        is_allocated: The API server's claim has one of the prepared devices.
    """

    is_listed: bool | None = None
    exists: bool | None = None
    is_named: bool | None = None
    is_allocated: bool | None = None


@dataclass(frozen=True, slots=True)
class Staleness:
    """Why a claim is stale, as the end of a sentence, and how long it must stay so."""

    why: str
    grace: timedelta


def staleness(
    claim: PreparedClaim, home: Home, evidence: Evidence, grace: timedelta
) -> Staleness | None:
    """Why a claim is stale; None while a fact shows its use, or is unknown.

    Args:
        claim: A claim that was prepared in this boot.
        home: This node and cluster.
        evidence: The facts about its use.
        grace: The grace of a claim that the API server does not have.
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
        why = "it no longer has its devices, and neither the kubelet nor a pod names it"
        return Staleness(why, grace)
    return None


def is_of_other_cluster(claim: PreparedClaim, home: Home) -> bool:
    """Whether it was prepared when the node was part of another cluster."""
    return claim.home.cluster not in ("", home.cluster)


def is_allocated(claim: PreparedClaim, found: JsonObject | FullClaim) -> bool:
    """Whether the API server's claim has a prepared device; True if these are unknown."""
    results = read_as(FullClaim, found).results
    devices = {result.device for result in results if result.driver == DRIVER_NAME}
    return not claim.devices or any(d.allocated.device in devices for d in claim.devices)
