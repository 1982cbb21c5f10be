"""The dashboard as a process with its own account, and how it finds the plugin that leads."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from local_cluster.api import Cluster, Component, Mode
from local_cluster.component_handles import ComponentProcess
from local_cluster.components import HttpReady
from moorage_demo.installation import NAMESPACE, ROOT
from tests.deploy.documents import DASHBOARD, documents_in

NODE = "node-a"
PORT = 10266
PLUGIN_PORT = 10265
WORKLOADS = ("Deployment", "PodDisruptionBudget", "Service")


def install_objects(cluster: Cluster, lease: str) -> None:
    """Account, roles and Secret of `deploy/dashboard`, and the right to read another Lease."""
    found = [document for documents in documents_in(DASHBOARD).values() for document in documents]
    cluster.apply([document for document in found if document["kind"] not in WORKLOADS])
    cluster.apply(lease_role(lease.partition("/")[0]))


def lease_role(namespace: str) -> list[dict[str, Any]]:
    api = "rbac.authorization.k8s.io"
    meta = {"name": "moorage-dashboard-leases", "namespace": namespace}
    rule = {"apiGroups": ["coordination.k8s.io"], "resources": ["leases"], "verbs": ["get"]}
    subject = {"kind": "ServiceAccount", "name": "dashboard", "namespace": NAMESPACE}
    ref = {"apiGroup": api, "kind": "Role", "name": meta["name"]}
    head = {"apiVersion": f"{api}/v1", "metadata": meta}
    return [
        {**head, "kind": "Role", "rules": [rule]},
        {**head, "kind": "RoleBinding", "roleRef": ref, "subjects": [subject]},
    ]


def answers(cluster: Cluster, node: str = NODE) -> tuple[str, ...]:
    """Flags of a plugin on a node that is to answer the dashboard."""
    return ("--dashboard-address", f"{cluster.node(node).address}:{PLUGIN_PORT}")


@contextmanager
def running(cluster: Cluster, *flags: str, node: str = NODE) -> Iterator[ComponentProcess]:
    """A dashboard on all addresses of the nodes, ready: probes ask a node's own."""
    module = (sys.executable, "-m", "scheduler_plugin", "dashboard")
    component = Component(
        name="dashboard",
        argv=(*module, "--listen-address", f"0.0.0.0:{port_on(node)}", *flags),
        namespace=NAMESPACE,
        service_account="dashboard",
        node=node,
        cwd=ROOT,
        ready=HttpReady(port_on(node)),
    )
    handle = cluster.start_component(component, Mode.PROCESS)
    assert isinstance(handle, ComponentProcess)
    try:
        handle.wait_ready()
        yield handle
    finally:
        handle.stop()


def port_on(node: str) -> int:
    """All nodes share one loopback."""
    return PORT if node == NODE else PORT + 1


@contextmanager
def leaders_pods(cluster: Cluster, lease: str, hosts: Sequence[tuple[str, str]]) -> Iterator[None]:
    """Pods with the names of the hosts that may hold the Lease, each on the address of its node.

    The schedulers of these stories are processes; what finds them is as in a cluster of pods.
    """
    namespace = lease.partition("/")[0]
    for name, node in hosts:
        cluster.apply([_pod(name, namespace)])
        address = cluster.node(node).address
        status = {"podIP": address, "podIPs": [{"ip": address}]}
        with cluster.api() as api:
            api.patch(f"/api/v1/namespaces/{namespace}/pods/{name}/status", {"status": status})
    try:
        yield
    finally:
        for name, _ in hosts:
            cluster.kubectl("--namespace", namespace, "delete", "pod", name, "--wait=false")


def _pod(name: str, namespace: str) -> dict[str, Any]:
    """One that no scheduler takes."""
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": namespace},
        "spec": {
            "schedulerName": "none",
            "containers": [{"name": "main", "image": "none"}],
        },
    }
