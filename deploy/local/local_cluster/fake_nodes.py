"""Fake nodes: Node objects and Leases that look alive, with no machine behind them.

They carry a taint, so that pods of other tests, which would never start there, stay away;
pods that are meant for them tolerate it.
"""

from __future__ import annotations

from datetime import datetime
from typing import Any

LABEL = "moorage.test/node"
FAKE = "fake"
TAINT: dict[str, str] = {"key": "moorage.test/fake", "effect": "NoSchedule"}
LEASE_SECONDS = 40


def names(count: int) -> tuple[str, ...]:
    return tuple(f"fake-{index:04d}" for index in range(count))


def is_fake(node: dict[str, Any]) -> bool:
    return bool(node["metadata"].get("labels", {}).get(LABEL) == FAKE)


def node_object(name: str) -> dict[str, Any]:
    labels = {LABEL: FAKE, "kubernetes.io/hostname": name, "kubernetes.io/os": "linux"}
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "labels": labels},
        "spec": {"taints": [TAINT]},
    }


def ready_status(now: datetime) -> dict[str, Any]:
    """What a kubelet reports about an idle machine of 32 cores."""
    room = {"cpu": "32", "memory": "64Gi", "pods": "250", "ephemeral-storage": "100Gi"}
    time = rfc3339(now)
    condition = {
        "type": "Ready",
        "status": "True",
        "reason": "FakeNode",
        "message": "no kubelet behind this node",
        "lastHeartbeatTime": time,
        "lastTransitionTime": time,
    }
    return {"status": {"allocatable": room, "capacity": room, "conditions": [condition]}}


def schedulable() -> dict[str, Any]:
    """Takes the not-ready taint away, which admission adds and the node controller may not see."""
    return {"spec": {"taints": [TAINT]}}


def lease(name: str, now: datetime) -> dict[str, Any]:
    return {
        "apiVersion": "coordination.k8s.io/v1",
        "kind": "Lease",
        "metadata": {"name": name, "namespace": "kube-node-lease"},
        "spec": {
            "holderIdentity": name,
            "leaseDurationSeconds": LEASE_SECONDS,
            "renewTime": micro_time(now),
        },
    }


def renewal(now: datetime) -> dict[str, Any]:
    return {"spec": {"renewTime": micro_time(now)}}


def rfc3339(moment: datetime) -> str:
    return moment.strftime("%Y-%m-%dT%H:%M:%SZ")


def micro_time(moment: datetime) -> str:
    """Leases carry microseconds, and the API server insists on them."""
    return moment.strftime("%Y-%m-%dT%H:%M:%S.%fZ")
