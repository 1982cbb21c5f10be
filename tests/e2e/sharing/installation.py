"""The scheduler plugin on the cluster: its objects, its process, and kube-scheduler's settings."""

from __future__ import annotations

import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import yaml

from local_cluster.api import Cluster, Component, Mode
from local_cluster.component_handles import ComponentHandle
from moorage_demo import installation
from tests.e2e.sharing import dashboards
from tests.e2e.sharing.extender import Extender

ROOT = Path(__file__).parents[3]
NODE = "node-a"
PROXY_PORT = 10263
LEASE = "kube-system/kube-scheduler-moorage"
PLUGIN = (sys.executable, "-m", "scheduler_plugin")
PLUGIN_URL = "http://127.0.0.1:10261"
PAGES_URL = "http://127.0.0.1:10262"

# The local cluster's kube-scheduler keeps its Lease elsewhere than the one of the manifests.
LEASE_ROLE = [
    {
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": "Role",
        "metadata": {"name": "moorage-scheduler-plugin", "namespace": "kube-system"},
        "rules": [
            {"apiGroups": ["coordination.k8s.io"], "resources": ["leases"], "verbs": ["get"]}
        ],
    },
    {
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": "RoleBinding",
        "metadata": {"name": "moorage-scheduler-plugin", "namespace": "kube-system"},
        "roleRef": {
            "apiGroup": "rbac.authorization.k8s.io",
            "kind": "Role",
            "name": "moorage-scheduler-plugin",
        },
        "subjects": [
            {
                "kind": "ServiceAccount",
                "name": "scheduler-plugin",
                "namespace": installation.NAMESPACE,
            }
        ],
    },
]


def install_objects(cluster: Cluster) -> None:
    """All but the workloads and the webhooks."""
    installation.install_objects(cluster)
    cluster.apply(LEASE_ROLE)
    dashboards.install_objects(cluster, LEASE)


def plugin_component(*flags: str) -> Component:
    return Component(
        name="scheduler-plugin",
        argv=(*PLUGIN, "--lease", LEASE, "--scheduler-identity", socket.gethostname(), *flags),
        namespace=installation.NAMESPACE,
        service_account="scheduler-plugin",
        node=NODE,
        cwd=ROOT,
    )


def start_proxy(cluster: Cluster) -> tuple[ComponentHandle, Extender]:
    """The proxy between kube-scheduler and the plugin, listening."""
    extender = Extender(cluster.node(NODE).address, PROXY_PORT)
    module = (sys.executable, "-m", "tests.e2e.sharing.extender_proxy")
    place = ("--host", extender.host, "--port", str(extender.port), "--plugin", PLUGIN_URL)
    component = Component(name="extender-proxy", argv=(*module, *place), node=NODE, cwd=ROOT)
    handle = cluster.start_component(component, Mode.PROCESS)
    cluster.wait_until("the proxy listens", extender.is_up)
    return handle, extender


@contextmanager
def asking(cluster: Cluster, extender: Extender) -> Iterator[None]:
    """kube-scheduler `moorage` asks the plugin, by way of the proxy."""
    printed = _printed_configuration()
    (entry,) = printed["extenders"]
    # A test may hold a call for longer than an administrator would wait for it.
    through = {**entry, "urlPrefix": extender.url, "httpTimeout": "40s"}
    backoff = {"podInitialBackoffSeconds": 1, "podMaxBackoffSeconds": 2}
    with cluster.reconfigured(scheduler_overlay={"extenders": [through], **backoff}):
        yield


def _printed_configuration() -> dict[str, Any]:
    done = subprocess.run(
        (*PLUGIN, "print-config"), cwd=ROOT, capture_output=True, text=True, check=True
    )
    found: dict[str, Any] = yaml.safe_load(done.stdout)
    return found
