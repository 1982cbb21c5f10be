"""Nodes that nobody runs, which see a device until they are gone."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import Any

from local_cluster.api import Cluster

LOST = "node-lost"
BEAT_SECONDS = 10.0


@contextmanager
def lost_node(cluster: Cluster) -> Iterator[str]:
    """A Node that nobody runs, and that says again and again that it is Ready."""
    cluster.apply({"apiVersion": "v1", "kind": "Node", "metadata": {"name": LOST}})
    beat(cluster)
    over = threading.Event()
    heart = threading.Thread(target=beat_until, args=(cluster, over))
    heart.start()
    try:
        yield LOST
    finally:
        over.set()
        heart.join()
        cluster.kubectl("delete", "node", LOST, "--ignore-not-found")


def beat_until(cluster: Cluster, over: threading.Event) -> None:
    """The node controller takes a Node for lost that was silent for 50 s."""
    while not over.wait(BEAT_SECONDS):
        beat(cluster, check=False)  # the story deletes it


def beat(cluster: Cluster, *, check: bool = True) -> None:
    now = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    ready = {"type": "Ready", "status": "True", "lastTransitionTime": now, "lastHeartbeatTime": now}
    status = json.dumps({"status": {"conditions": [ready]}})
    patch = ("patch", "node", LOST, "--subresource=status", "--type=merge", "-p", status)
    cluster.kubectl(*patch, check=check)


def enter_as_akri(cluster: Cluster, instance: dict[str, Any], node: str) -> None:
    """Let a node see an Instance, or own its entry as well, as Akri's agent writes it."""
    metadata = {name: instance["metadata"][name] for name in ("name", "namespace")}
    named = {"apiVersion": "akri.sh/v0", "kind": "Instance", "metadata": metadata}
    options = ("apply", "--server-side", f"--field-manager={node}", "-f", "-")
    cluster.kubectl(*options, stdin=json.dumps({**named, "spec": {"nodes": [node]}}))
