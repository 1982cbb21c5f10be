"""Two replicas on the cluster, as two pods of the Deployment would be: one on each node.

They have a scheduler name and a Lease of their own, so that the cluster's other schedulers do not
meet them. All nodes share one network here, so that each replica listens on ports of its own.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from local_cluster.api import Cluster, Component, Mode
from local_cluster.component_handles import ComponentProcess
from moorage_demo import installation

ROOT = Path(__file__).parents[3]
NAMESPACE = installation.NAMESPACE
SCHEDULER = "moorage-failover"
LEASE = "moorage-scheduler"
TIMES = {"leaseDuration": "8s", "renewDeadline": "3s", "retryPeriod": "500ms"}
"""The shortest that serve: a Queue's status is written only while the Lease is ours for 5 s more,
and a renewal may be seen two seconds late."""


@dataclass(frozen=True)
class Place:
    """Where a replica runs.

    Attributes:
        plugin_port: On loopback.
        pages_port: Likewise.
        proxy_port: On the node's address.
    """

    node: str
    plugin_port: int
    pages_port: int
    proxy_port: int

    @property
    def plugin_url(self) -> str:
        return f"http://127.0.0.1:{self.plugin_port}"

    @property
    def pages_url(self) -> str:
        return f"http://127.0.0.1:{self.pages_port}"


PLACES = (Place("node-a", 10271, 10275, 10273), Place("node-b", 10272, 10276, 10274))


def kube_scheduler(
    cluster: Cluster,
    place: Place,
    configuration: Mapping[str, Any],
    name: str = "failover-kube-scheduler",
) -> ComponentProcess:
    """A stock kube-scheduler with the rights of the manifests' one."""
    account = {"namespace": NAMESPACE, "node": place.node}
    kubeconfig = cluster.service_account_kubeconfig("scheduler", **account)
    connection = {"clientConnection": {"kubeconfig": str(kubeconfig), "qps": 200, "burst": 400}}
    file = kubeconfig.with_name(f"{name}-{place.node}.json")
    file.write_text(json.dumps({**configuration, **connection}))
    program = Path(cluster.kubectl_program).with_name("kube-scheduler")
    return _process(
        cluster,
        name=name,
        # It serves nothing: health and metrics are nobody's concern here.
        argv=(str(program), f"--config={file}", "--secure-port=0"),
        service_account="scheduler",
        namespace=NAMESPACE,
        node=place.node,
    )


def plugin(
    cluster: Cluster, place: Place, lease: str = LEASE, scheduler: str = SCHEDULER, *more: str
) -> ComponentProcess:
    """The plugin beside it. The host name of a process in a node is the node's."""
    address = place.plugin_url.removeprefix("http://")
    pages = place.pages_url.removeprefix("http://")
    addresses = ("--listen-address", address, "--pages-address", pages)
    flags = (*addresses, "--lease", f"{NAMESPACE}/{lease}", "--scheduler-name", scheduler, *more)
    return _process(
        cluster,
        name="failover-plugin",
        argv=(sys.executable, "-m", "scheduler_plugin", *flags),
        service_account="scheduler-plugin",
        namespace=NAMESPACE,
        node=place.node,
        cwd=ROOT,
    )


def proxy(cluster: Cluster, place: Place) -> ComponentProcess:
    """Between the two, so that a test can hold a call."""
    where = ("--host", cluster.node(place.node).address, "--port", str(place.proxy_port))
    module = (sys.executable, "-m", "tests.e2e.sharing.extender_proxy")
    return _process(
        cluster,
        name="failover-proxy",
        argv=(*module, *where, "--plugin", place.plugin_url),
        node=place.node,
        cwd=ROOT,
    )


def configuration(
    extenders: list[dict[str, Any]],
    *,
    scheduler: str = SCHEDULER,
    lease: str = LEASE,
    times: Mapping[str, str] = TIMES,
    **fields: Any,
) -> dict[str, Any]:
    """A KubeSchedulerConfiguration, but for the kubeconfig."""
    return {
        "apiVersion": "kubescheduler.config.k8s.io/v1",
        "kind": "KubeSchedulerConfiguration",
        "leaderElection": {
            "leaderElect": True,
            "resourceNamespace": NAMESPACE,
            "resourceName": lease,
            **times,
        },
        "profiles": [{"schedulerName": scheduler}],
        "extenders": extenders,
        **fields,
    }


def extender(url: str, timeout: str) -> dict[str, Any]:
    """What kube-scheduler asks."""
    return {
        "urlPrefix": url,
        "filterVerb": "filter",
        "preemptVerb": "preempt",
        "bindVerb": "bind",
        "nodeCacheCapable": True,
        "httpTimeout": timeout,
    }


def _process(cluster: Cluster, **described: Any) -> ComponentProcess:
    handle = cluster.start_component(Component(**described), Mode.PROCESS)
    assert isinstance(handle, ComponentProcess)
    return handle
