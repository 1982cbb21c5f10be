"""Which claims the kubelet uses, by what it says itself: its state of claims, and pod-resources.

    dra_manager_state ──parse_state──► State ─┐
    pod-resources ──► names of claims ────────┴─ is_used ──► True, False, or None: unknown

The state is a file of the kubelet's own (k8s.io/kubernetes, `pkg/kubelet/cm/dra/state`): a claim is
in it from before it is prepared until it is unprepared, with its UID. Pod-resources is an API, but
names claims without UIDs, and only those of pods that the kubelet still has: of a pod that was
deleted by force it says nothing while its containers end. So nothing counts as unused where the
state cannot be read: in the chart's pods, since the file cannot be had alone. The kubelet replaces
it at each write, which a mount of the file does not follow, and the folder has all pods' secrets.
"""

from __future__ import annotations

import json
import zlib
from collections.abc import Collection, Mapping

from driver.preparing.files.prepared import ClaimReference

STATE = "dra_manager_state"
KIND = "DRACheckpoint"

Name = tuple[str, str]
"""Namespace and name of a claim."""

State = Mapping[str, Name]
"""The claims of the kubelet's state, by UID."""


def parse_state(text: bytes) -> State | None:
    """The kubelet's state; None if this is none, or one of a version that is not known."""
    try:
        document = json.loads(text)
        data = document["Data"]
        if zlib.crc32(data.encode()) != document["Checksum"]:
            return None
        state = json.loads(data)
        if state["kind"] != KIND:
            return None
        claims = state["ClaimInfoStateList"] or ()
        return {
            _text(c["ClaimUID"]): (_text(c["Namespace"]), _text(c["ClaimName"])) for c in claims
        }
    except (ValueError, TypeError, LookupError, AttributeError, RecursionError):
        return None


def _text(value: object) -> str:
    if not isinstance(value, str):
        raise TypeError(value)
    return value


def is_used(
    claim: ClaimReference, state: State | None, listed: Collection[Name] | None
) -> bool | None:
    """Whether a container may have the claim; None: unknown, as one of the two is."""
    if state is not None and claim.uid in state:
        return True
    name = (claim.namespace, claim.name)
    # A claim of the same name that came later is listed by it, too.
    if listed is not None and name in listed and name not in (state or {}).values():
        return True
    return None if state is None or listed is None else False
