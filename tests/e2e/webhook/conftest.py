"""An API server with the webhook beside it."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator

import pytest

from kube.calls.api import ApiClient, connect
from local_cluster.api import Cluster
from tests.e2e.webhook.installation import (
    WebhookProcess,
    install,
    registered,
    wait_configurations_known,
)
from tests.e2e.webhook.objects import CLOSED, MANAGED, OPEN, VERSIONS, the_world


@pytest.fixture(scope="package")
def server(apiserver: Cluster) -> Iterator[Cluster]:
    """An API server that serves all versions of claims, with what the stories are about."""
    beta = {f"resource.k8s.io/{version}": "true" for version in VERSIONS if version != "v1"}
    with apiserver.reconfigured(runtime_config=beta):
        install(apiserver)
        apiserver.apply({"apiVersion": "v1", "kind": "List", "items": the_world()})
        for namespace in (OPEN, CLOSED, MANAGED, "kube-system"):
            # Pods need the account; there is no controller here that makes it.
            apiserver.service_account_kubeconfig("default", namespace=namespace)
        yield apiserver
        # Pods that have a node wait for a kubelet to end them, and there is none.
        at_once = ("--all", "--grace-period=0", "--force", "--wait=false")
        apiserver.kubectl("delete", "pods", *at_once, "--all-namespaces")
        apiserver.kubectl(
            *("delete", "resourceclaims,resourceclaimtemplates", "--all", "--all-namespaces"),
            "--wait=false",
        )
        apiserver.kubectl("delete", "queues,deviceclasses,nodes", "--all")


@pytest.fixture(scope="package")
def webhook(server: Cluster) -> Iterator[WebhookProcess]:
    """The process, ready; the stories that end it start it again."""
    process = WebhookProcess(server)
    process.start("--scheduler-names=moorage")
    try:
        process.wait_ready()
        yield process
    finally:
        process.kill()


@pytest.fixture(scope="package")
def asked(server: Cluster, webhook: WebhookProcess) -> Iterator[WebhookProcess]:
    """The process, asked by the API server about everything that it is registered for."""
    with registered(server, webhook):
        wait_configurations_known(server)
        yield webhook


@pytest.fixture
async def admin(server: Cluster, asked: WebhookProcess) -> AsyncIterator[ApiClient]:
    async with connect(server.kubeconfig) as client:
        yield client
