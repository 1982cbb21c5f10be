"""Moorage's driver where it serves the device plugin."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from local_cluster.api import Cluster
from local_cluster.component_handles import ComponentHandle
from tests.e2e.driver import installation
from tests.e2e.driver.brokers import allow_everywhere
from tests.e2e.driver.installation import Drivers


def availability(cluster: Cluster) -> Path:
    """What takes all devices away and brings them back, of this cluster alone."""
    return cluster.work_dir / "debug-echo-availability.txt"


def start_drivers(cluster: Cluster, *flags: str, path: str = "auto") -> Drivers:
    """The drivers as processes, all on one path, with these flags for those of the nodes.

    Nothing of a node's driver says that it serves: stories wait for what the node offers.
    """
    nodes = {}
    for node in installation.NODES:
        driver = installation.node_driver(node)
        argv = (
            *driver.argv,
            "--debug-echo-file",
            str(availability(cluster)),
            *flags,
            "--path",
            path,
        )
        nodes[node] = cluster.start_component(replace(driver, argv=argv, ready=None))
    return Drivers(nodes, start_shared(cluster, path))


def start_shared(cluster: Cluster, path: str) -> ComponentHandle:
    """The driver of the cluster as a process, on a path."""
    allow_everywhere(cluster)
    shared = installation.shared_driver()
    return cluster.start_component(replace(shared, argv=(*shared.argv, "--path", path)))
