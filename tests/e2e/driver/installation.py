"""Moorage's driver, installed in the cluster: its objects, and its processes or pods."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from dataclasses import dataclass, replace

from local_cluster.api import Cluster, Component, SocketReady
from local_cluster.component_handles import ComponentHandle
from moorage_demo.installation import NAMESPACE, ROOT, install_objects
from tests.e2e.driver.brokers import allow_everywhere

__all__ = ["NAMESPACE", "ROOT", "Drivers", "install_objects", "start_processes"]

NODES = ("node-a", "node-b")
DEBUG_ECHO_FILE = "/var/lib/kubelet/debug-echo-availability.txt"
NODE_FLAGS = (
    f"--debug-echo-file={DEBUG_ECHO_FILE}",
    "--rediscovery-interval=1s",
    "--handler-mount-paths=/tmp/moorage-*,/etc/os-release,/usr/lib/os-release",
)
SHARED_FLAGS = ("--lost-node-grace=2s", "--instance-classes", "--broker-namespaces=*")
WORKLOADS = (
    "driver-node-daemonset.yaml",
    "driver-shared-deployment.yaml",
    "network-handlers-daemonset.yaml",
)


@dataclass(frozen=True)
class Drivers:
    """The running drivers: one for each node, and one for the cluster."""

    nodes: Mapping[str, ComponentHandle]
    shared: ComponentHandle

    def stop(self) -> None:
        for handle in (*self.nodes.values(), self.shared):
            handle.stop()

    def start(self) -> None:
        for handle in (*self.nodes.values(), self.shared):
            handle.start()
        for handle in self.nodes.values():
            handle.wait_ready()


def start_processes(cluster: Cluster, *node_flags: str) -> Drivers:
    """The drivers as processes in the nodes' namespaces, under their ServiceAccounts."""
    nodes = {node: start(cluster, node_driver(node, *node_flags)) for node in NODES}
    drivers = Drivers(nodes, start_shared(cluster))
    for handle in nodes.values():
        handle.wait_ready()
    return drivers


def start_shared(cluster: Cluster) -> ComponentHandle:
    """The driver of the cluster as a process, with the rights that its flags need."""
    allow_everywhere(cluster)
    return start(cluster, shared_driver())


def start(cluster: Cluster, driver: Component) -> ComponentHandle:
    """A driver whose path is chosen by hand where it would not take DRA by itself."""
    by_hand = ("--path", "dra") if cluster.settings.has_dra_by_hand else ()
    return cluster.start_component(replace(driver, argv=(*driver.argv, *by_hand)))


def node_driver(node: str, *flags: str) -> Component:
    return Component(
        name="driver-node",
        argv=(sys.executable, "-m", "driver", "node", *NODE_FLAGS, *flags),
        namespace=NAMESPACE,
        service_account="driver-node",
        node=node,
        cwd=ROOT,
        env={"POD_UID": ""},
        ready=SocketReady("/var/lib/kubelet/plugins_registry/moorage.dev-reg.sock"),
    )


def shared_driver(name: str = "driver-shared") -> Component:
    return Component(
        name=name,
        argv=(sys.executable, "-m", "driver", "shared", *SHARED_FLAGS),
        namespace=NAMESPACE,
        service_account="driver-shared",
        node="node-a",
        cwd=ROOT,
    )
