"""A real API server with the policies in force, and the accounts that write claims there."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from kube.calls.api import ApiClient, connect
from local_cluster.api import Cluster
from tests.deploy.documents import DEPLOY
from tests.e2e.binder.world import NAMESPACE, OWNER_POD, QUEUE, a_binding, a_claim, a_pod

POLICIES = DEPLOY / "policies"
BINDER = "scheduler-plugin"
SCHEDULER = "scheduler"
BINDERS_NAMESPACE = "moorage-system"


def a_cluster_role(name: str, *rules: tuple[str, str, list[str]]) -> dict[str, Any]:
    """A role of (group, resource, verbs)."""
    return {
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": "ClusterRole",
        "metadata": {"name": name},
        "rules": [
            {"apiGroups": [group], "resources": [resource], "verbs": verbs}
            for group, resource, verbs in rules
        ],
    }


def a_grant(role: str, account: str, namespace: str) -> dict[str, Any]:
    return {
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": "ClusterRoleBinding",
        "metadata": {"name": f"{role}-of-{account}"},
        "roleRef": {
            "apiGroup": "rbac.authorization.k8s.io",
            "kind": "ClusterRole",
            "name": role,
        },
        "subjects": [{"kind": "ServiceAccount", "name": account, "namespace": namespace}],
    }


def wait_in_force(cluster: Cluster) -> None:
    """Policies come into force one by one: ask for what each must refuse."""
    forged = a_claim("probe", annotations={OWNER_POD: "forged"})
    binding = a_binding("probe", annotations={QUEUE: "a"})
    pod = a_pod("probe", annotations={QUEUE: "a"})

    def refuses(body: Mapping[str, Any]) -> bool:
        create = ("create", "-f", "-", "--dry-run=server")
        done = cluster.kubectl(*create, stdin=json.dumps(body), check=False)
        return "ValidatingAdmissionPolicy" in done.stderr

    for body in (forged, binding, pod):
        cluster.wait_until(f"refused: {body['kind']}", partial(refuses, body))


@pytest.fixture(scope="package")
def server(apiserver: Cluster) -> Iterator[Cluster]:
    """An API server with the policies in force."""
    for name in (NAMESPACE, BINDERS_NAMESPACE):
        apiserver.apply({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}})
    apiserver.kubectl("apply", "-f", str(POLICIES))
    # Pods need the account; there is no controller here that makes it.
    apiserver.service_account_kubeconfig("default", namespace=NAMESPACE)
    wait_in_force(apiserver)
    yield apiserver
    apiserver.kubectl("delete", "-f", str(POLICIES))


@pytest.fixture(scope="package")
def kubeconfigs(server: Cluster) -> Mapping[str, Path]:
    """Tokens of the binder, with the rights that it needs, and of a user with the same ones."""
    rules = (
        ("resource.k8s.io", "resourceclaims", ["get", "patch"]),
        ("resource.k8s.io", "resourceslices", ["list"]),
        ("policy", "poddisruptionbudgets", ["list"]),
        ("", "nodes", ["get"]),
        ("", "pods", ["get", "list"]),
        ("", "pods/status", ["patch"]),
        ("", "pods/binding", ["create"]),
        ("", "pods/eviction", ["create"]),
    )
    accounts = {BINDER: BINDERS_NAMESPACE, "user": NAMESPACE, SCHEDULER: BINDERS_NAMESPACE}
    server.apply(a_grant("cluster-admin", SCHEDULER, BINDERS_NAMESPACE))
    for name, namespace in accounts.items():
        server.apply(a_cluster_role(f"binder-test-{name}", *rules))
        server.apply(a_grant(f"binder-test-{name}", name, namespace))
    return {
        name: server.service_account_kubeconfig(name, namespace=namespace)
        for name, namespace in accounts.items()
    }


@pytest.fixture
async def account(kubeconfigs: Mapping[str, Path]) -> AsyncIterator[ApiClient]:
    """A client as the binder's account."""
    async with connect(kubeconfigs[BINDER]) as client:
        yield client


@pytest.fixture
async def user(kubeconfigs: Mapping[str, Path]) -> AsyncIterator[ApiClient]:
    """A client as somebody else with the same rights."""
    async with connect(kubeconfigs["user"]) as client:
        yield client


@pytest.fixture
async def admin(kubeconfigs: Mapping[str, Path]) -> AsyncIterator[ApiClient]:
    """A client that plays kube-scheduler and the resource claim controller, with all rights.

    It has the account of Moorage's scheduler, since nobody else may allocate.
    """
    async with connect(kubeconfigs[SCHEDULER]) as client:
        yield client
