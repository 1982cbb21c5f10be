"""Lost claims: those that are prepared, and whose CDI file is gone.

    PreparedClaim, ResourceClaim, pods of the node ──use_of──► Use

Another driver released the claim, or a person removed the file. A file that is written again after
a release would hold the device, for a driver of an earlier version, too, which believes the file.
So it is written again only for a claim that is in use, by what the API server says. Before a pod's
end is told there, the kubelet has unprepared its claims: so that is asked more than once.
"""

from __future__ import annotations

from collections.abc import Iterable
from enum import Enum

from driver.preparing.files.prepared import PreparedClaim
from driver.preparing.grants.claims import consumers
from driver.preparing.stale_claims import is_allocated
from kube.shapes.full_claims import FullClaim
from kube.shapes.pods import Pod
from kube.shapes.reading import JsonObject, read_as

CONFIRM_SECONDS = 5.0
"""For so long at the least a claim must have been in use before its file is written again."""


class Use(Enum):
    """Whether a claim is in use on this node.

    Attributes:
        RUNNING: A pod of the node has it that has not ended, and is not being deleted.
        ENDING: Pods that are being deleted have it, or what is not a pod.
        NONE: No pod of the node has it, or it has its devices no more.
    """

    RUNNING = "running"
    ENDING = "ending"
    NONE = "none"


def use_of(
    claim: PreparedClaim,
    found: JsonObject | FullClaim | None,
    pods: Iterable[JsonObject | Pod],
) -> Use:
    """Who uses a claim that is prepared here.

    Args:
        claim: One of which all is known.
        found: The API server's of that name; None if it has none.
        pods: Those of this node, as the API server has them.
    """
    stored = read_as(FullClaim, found) if found is not None else None
    if stored is None or stored.uid != claim.reference.uid or not is_allocated(claim, stored):
        return Use.NONE
    uids = frozenset(consumers(stored))
    every = (read_as(Pod, pod) for pod in pods)
    users = [pod for pod in every if pod.metadata.uid in uids and not pod.has_ended]
    if any(pod.metadata.deletion_timestamp is None for pod in users):
        return Use.RUNNING
    return Use.ENDING if users or len(stored.consumers) > len(uids) else Use.NONE
