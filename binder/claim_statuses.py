"""What is cleared of a claim's status, as a merge patch."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from scheduler_plugin.api import ClaimCleared


def is_as_judged(obj: Mapping[str, Any], cleared: ClaimCleared) -> bool:
    """Whether the claim is still the one, in the version, that was decided about."""
    metadata = obj.get("metadata") or {}
    found = metadata.get("uid"), metadata.get("resourceVersion")
    return found == (cleared.uid, cleared.resource_version)


def cleared_status(obj: Mapping[str, Any], cleared: ClaimCleared) -> dict[str, Any]:
    """A patch of the status: without those that are gone and, with the last, the allocation.

    Kubernetes' own controller writes the same. What devices said of themselves (`status.devices`)
    goes with the allocation: the API server sees to that.
    """
    if cleared.deallocate:
        return {"status": {"reservedFor": None, "allocation": None}}
    reserved = (obj.get("status") or {}).get("reservedFor") or []
    left = [consumer for consumer in reserved if consumer.get("uid") not in cleared.gone]
    return {"status": {"reservedFor": left}}
