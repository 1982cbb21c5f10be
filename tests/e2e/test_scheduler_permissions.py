"""What the accounts of Moorage's scheduler may do, as the real API server tells it."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

import pytest

from local_cluster.api import Cluster
from moorage_demo import installation
from moorage_demo.installation import NAMESPACE
from tests.e2e.test_manifests import Identity, remove_policies

REVIEWS = "/apis/authorization.k8s.io/v1/selfsubjectrulesreviews"
FOLLOW = ("list", "watch")
# Every account may ask who it is and what it may do, and read ClusterTrustBundles (from 1.37 on).
OF_ALL_ACCOUNTS = {"authentication.k8s.io", "authorization.k8s.io", "certificates.k8s.io"}

Granted = set[tuple[str, str]]


@pytest.fixture(scope="module")
def server(apiserver: Cluster) -> Iterator[Cluster]:
    installation.install_objects(apiserver)
    yield apiserver
    remove_policies(apiserver)


def granted(cluster: Cluster, account: str, namespace: str) -> Granted:
    """Verb and `resource.group` pairs; `resource.group/name` where the rule names objects."""
    review = {
        "apiVersion": "authorization.k8s.io/v1",
        "kind": "SelfSubjectRulesReview",
        "spec": {"namespace": namespace},
    }
    identity = Identity(cluster, account)
    told = identity.kubectl("create", "--raw", REVIEWS, "-f", "-", body=review)
    assert told.returncode == 0, told.stderr
    return {
        pair for rule in json.loads(told.stdout)["status"]["resourceRules"] for pair in of(rule)
    }


def of(rule: dict[str, Any]) -> Granted:
    return {
        (verb, ".".join(filter(None, (resource, group))) + (f"/{name}" if name else ""))
        for group in rule["apiGroups"]
        if group not in OF_ALL_ACCOUNTS
        for resource in rule["resources"]
        for verb in rule["verbs"]
        for name in rule.get("resourceNames") or ("",)
    }


def all_verbs(verbs: tuple[str, ...], *resources: str) -> Granted:
    return {(verb, resource) for verb in verbs for resource in resources}


PLUGIN = (
    all_verbs(FOLLOW, "namespaces", "queues.moorage.dev", "podgroups.scheduling.run.ai")
    | all_verbs(FOLLOW, "podgroups.scheduling.x-k8s.io", "podgroups.scheduling.k8s.io")
    | all_verbs(FOLLOW, "configurations.akri.sh", "instances.akri.sh")
    | all_verbs(FOLLOW, "deviceclasses.resource.k8s.io", "resourceslices.resource.k8s.io")
    | all_verbs(FOLLOW, "devicetaintrules.resource.k8s.io")
    | all_verbs(("get", *FOLLOW), "pods")
    | all_verbs(FOLLOW, "nodes")
    | all_verbs(("get", *FOLLOW, "patch"), "resourceclaims.resource.k8s.io")
    | all_verbs(("create",), "pods/binding", "pods/eviction")
    | all_verbs(("patch",), "pods", "pods/status")
    | all_verbs(("patch",), "resourceclaims/status.resource.k8s.io")
    | all_verbs(("patch",), "resourceclaims/binding.resource.k8s.io")
    | all_verbs(("list",), "poddisruptionbudgets.policy")
    | all_verbs(("patch",), "queues/status.moorage.dev")
    | all_verbs(("patch",), "queues.moorage.dev")
    | all_verbs(("create", "patch"), "events.events.k8s.io")
)
REFUSED = "set after creation only by"
LEASE = "leases.coordination.k8s.io/moorage-scheduler"
LEASE_PATH = "/apis/coordination.k8s.io/v1/namespaces/moorage-system/leases/moorage-scheduler"


def test_the_plugin_may_do_what_it_does_and_no_more(server: Cluster) -> None:
    assert granted(server, "scheduler-plugin", "default") == PLUGIN


def test_the_plugin_reads_the_lease_that_it_follows(server: Cluster) -> None:
    assert granted(server, "scheduler-plugin", NAMESPACE) - PLUGIN == {("get", LEASE)}


def test_kube_scheduler_writes_its_lease_in_moorage_s_namespace_only(server: Cluster) -> None:
    everywhere = granted(server, "scheduler", "default")

    assert granted(server, "scheduler", NAMESPACE) - everywhere == {
        ("get", LEASE),
        ("update", LEASE),
    }
    assert ("create", "pods/binding") in everywhere
    assert ("patch", "pods/status") in everywhere
    assert not [verb for verb, resource in everywhere if resource.startswith("queues")]


def test_kube_scheduler_may_not_say_who_owns_a_claim(server: Cluster) -> None:
    """RBAC lets it change claims, since it sets their finalizer; the policy looks at the label."""
    claim = {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceClaim",
        "metadata": {"name": "contested", "namespace": "default"},
        "spec": {
            "devices": {"requests": [{"name": "disk", "exactly": {"deviceClassName": "disk"}}]}
        },
    }
    server.apply(claim)
    label = ("label", "resourceclaim", "contested", "--namespace=default", "moorage.dev/queue=mine")
    try:
        # Policies are in force some moments after they were created.
        scheduler = Identity(server, "scheduler")
        server.wait_until(
            "the policy refuses it",
            lambda: REFUSED in scheduler.kubectl(*label, "--dry-run=server").stderr,
        )
        allowed = Identity(server, "scheduler-plugin").kubectl(*label)
    finally:
        server.kubectl("delete", "resourceclaim", "contested", "--namespace=default")

    assert allowed.returncode == 0, allowed.stderr


@pytest.mark.parametrize("account", ["scheduler", "scheduler-plugin"])
def test_the_api_server_works_for_the_scheduler_as_for_kubernetes_own(
    server: Cluster, account: str
) -> None:
    pods, lease = "/api/v1/pods?limit=1", LEASE_PATH

    assert served_as(server, account, pods) == ("moorage-scheduler", "workload-high")
    assert served_as(server, account, lease) == ("moorage-scheduler-lease", "leader-election")


def served_as(cluster: Cluster, account: str, path: str) -> tuple[str, str]:
    """The FlowSchema and the priority level that a request falls under."""
    told = Identity(cluster, account).kubectl("get", "--raw", path, "-v=8")
    return (
        name_of(cluster, "flowschema", told.stderr, "Flowschema"),
        name_of(cluster, "prioritylevelconfiguration", told.stderr, "Prioritylevel"),
    )


def name_of(cluster: Cluster, kind: str, said: str, header: str) -> str:
    """The object whose UID a header of the answer names."""
    found = re.search(rf"X-Kubernetes-Pf-{header}-Uid: ([0-9a-f-]+)", said)
    assert found, said
    return next(
        str(obj["metadata"]["name"])
        for obj in cluster.list(kind)
        if obj["metadata"]["uid"] == found[1]
    )
