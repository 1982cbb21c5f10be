"""Akri's own controller, which makes brokers, too."""

from __future__ import annotations

import msgspec

from kube.kinds import PODS
from kube.shapes.metadata import StoredMetadata
from kube.shapes.reading import JsonObject, read_as

AKRIS_CONTROLLERS = PODS.select(label_selector="app.kubernetes.io/name=akri-controller")
"""Pods of Akri's controller, by the label of Akri's chart."""


class _Status(msgspec.Struct, frozen=True):
    phase: str | None = None


class _Pod(msgspec.Struct, frozen=True):
    metadata: StoredMetadata
    status: _Status | None = None


def controller(body: JsonObject) -> str | None:
    """The name of a pod of Akri's controller; None if it has ended, or is terminating.

    One that is still pending counts: it may run at any moment.
    """
    pod = read_as(_Pod, body)
    phase = pod.status.phase if pod.status else None
    if phase in ("Succeeded", "Failed") or pod.metadata.deletion_timestamp is not None:
        return None
    return f"{pod.metadata.namespace}/{pod.metadata.name}"
