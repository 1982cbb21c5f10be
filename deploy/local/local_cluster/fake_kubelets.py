"""The process behind the part `fake-nodes`: makes the Node objects and renews their leases.

It says nothing about pods: whatever is bound to a fake node stays Pending.
"""

from __future__ import annotations

import argparse
import time
from datetime import UTC, datetime
from pathlib import Path

from local_cluster import fake_nodes
from local_cluster.apiserver import ApiServer
from local_cluster.errors import ApiError
from local_cluster.progress import say

NODES = "/api/v1/nodes"
LEASES = "/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases"
# As kubelets do: a quarter of the lease's duration, so that one lost renewal is no outage.
RENEW_SECONDS = fake_nodes.LEASE_SECONDS / 4


def main() -> None:
    """Run until killed."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--server", required=True)
    parser.add_argument("--pki", type=Path, required=True)
    parser.add_argument("--count", type=int, required=True)
    options = parser.parse_args()
    api = ApiServer(options.server, options.pki)
    while True:
        try:
            run(api, fake_nodes.names(options.count))
        except OSError as error:
            # The API server may be restarting: nodes and leases are still there afterwards.
            say(f"no answer, trying again: {error}")
            api.close()
            time.sleep(0.5)


def run(api: ApiServer, names: tuple[str, ...]) -> None:
    ensure(api, names)
    while True:
        round_ends = time.monotonic() + RENEW_SECONDS
        for name in names:
            api.patch(f"{LEASES}/{name}", fake_nodes.renewal(datetime.now(UTC)))
        time.sleep(max(0.0, round_ends - time.monotonic()))


def ensure(api: ApiServer, names: tuple[str, ...]) -> None:
    """Leases first, and fresh ones: the node controller judges a new node by the last that it saw.

    It remembers a node of the same name that was there a while ago and calls the new one lost.
    """
    for name in names:
        now = datetime.now(UTC)
        if not _create(api, LEASES, fake_nodes.lease(name, now)):
            api.patch(f"{LEASES}/{name}", fake_nodes.renewal(now))
    for name in names:
        if _create(api, NODES, fake_nodes.node_object(name)):
            api.patch(f"{NODES}/{name}/status", fake_nodes.ready_status(datetime.now(UTC)))
            api.patch(f"{NODES}/{name}", fake_nodes.schedulable())


def _create(api: ApiServer, path: str, value: dict[str, object]) -> bool:
    """False when it exists already, from before a restart."""
    try:
        api.create(path, value)
    except ApiError as error:
        if error.reason != "AlreadyExists":
            raise
        return False
    return True


if __name__ == "__main__":
    main()
