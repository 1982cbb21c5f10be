"""Lost claims: prepared claims whose CDI files are missing.

    PreparedClaim, ResourceClaim, pods of the node ──use_of──► Use

Another driver released the claim, or a person removed the file. A file that is written again after
a release would block the device, also for a driver of an earlier version, which trusts the file.
So the file is written again only if the claim is in use according to the API server. The kubelet
unprepares the claims of a pod before the API server shows the pod's end, so that is asked twice.
"""

from __future__ import annotations

from collections.abc import Iterable
from enum import Enum

from driver.preparing.files.prepared import PreparedClaim
from driver.preparing.grants.claims import is_reserved_for
from driver.preparing.stale_claims import is_allocated
from kube.shapes.full_claims import FullClaim
from kube.shapes.pods import Pod
from kube.shapes.reading import JsonObject, read_as

CONFIRM_SECONDS = 5.0
"""Minimum time for which a claim must be in use before its file is written again."""


class Use(Enum):
    """Whether a claim is in use on this node.

    Attributes:
        RUNNING: A pod of the node uses it, has not ended and is not terminating.
        ENDING: Only terminating pods, or consumers that are no pods nor PodGroups, use it.
        NONE: No pod of the node uses it, or it no longer has its devices.
    """

    RUNNING = "running"
    ENDING = "ending"
    NONE = "none"


def use_of(
    claim: PreparedClaim,
    found: JsonObject | FullClaim | None,
    pods: Iterable[JsonObject | Pod],
) -> Use:
    """The use of a claim that is prepared here.

    Args:
        claim: The claim; its record is completely known.
        found: The API server's claim of that name; None if there is none.
        pods: The pods of this node in the API server.
    """
    stored = read_as(FullClaim, found) if found is not None else None
    if stored is None or stored.uid != claim.reference.uid or not is_allocated(claim, stored):
        return Use.NONE
    every = (read_as(Pod, pod) for pod in pods)
    users = [pod for pod in every if is_reserved_for(stored, pod) and not pod.has_ended]
    if any(pod.metadata.deletion_timestamp is None for pod in users):
        return Use.RUNNING
    has_others = any(not (user.is_pod or user.is_pod_group) for user in stored.consumers)
    return Use.ENDING if users or has_others else Use.NONE
