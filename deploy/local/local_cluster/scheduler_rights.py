"""What Kubernetes grants to a kube-scheduler by its name, for the second one, of another name."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from local_cluster.apiserver import ApiServer
from local_cluster.blueprint import Blueprint
from local_cluster.certificates import MOORAGE_SCHEDULER
from local_cluster.errors import ApiError

NAME = "kube-scheduler-moorage"
GROUP = "rbac.authorization.k8s.io"
RBAC = f"/apis/{GROUP}/v1"
IN_KUBE_SYSTEM = f"{RBAC}/namespaces/kube-system"
FLOW_SCHEMAS = "/apis/flowcontrol.apiserver.k8s.io/v1/flowschemas"
USER = MOORAGE_SCHEDULER.common_name

Object = dict[str, Any]


def grant(blueprint: Blueprint) -> None:
    """Repeatable. Before it starts: it asks again later and later for what was forbidden."""
    with ApiServer(blueprint.addresses.server, blueprint.layout.pki) as api:
        for path, value in _objects():
            try:
                api.create(path, value)
            except ApiError as error:
                if error.reason != "AlreadyExists":
                    raise


def _objects() -> Iterator[tuple[str, Object]]:
    yield f"{IN_KUBE_SYSTEM}/roles", _lease_role()
    yield f"{IN_KUBE_SYSTEM}/rolebindings", _binding(NAME, "Role", NAME)
    reader = "extension-apiserver-authentication-reader"
    yield f"{IN_KUBE_SYSTEM}/rolebindings", _binding(f"{NAME}-authentication", "Role", reader)
    for name, role in ((NAME, "kube-scheduler"), (f"{NAME}-volumes", "volume-scheduler")):
        yield f"{RBAC}/clusterrolebindings", _binding(name, "ClusterRole", f"system:{role}")
    yield FLOW_SCHEMAS, _flow_schema()


def _lease_role() -> Object:
    """kube-scheduler's own role names one Lease only; the second scheduler needs another."""
    leases = {
        "apiGroups": ["coordination.k8s.io"],
        "resources": ["leases"],
        "verbs": ["get", "list", "watch", "update", "patch"],
        "resourceNames": [NAME],
    }
    return {"metadata": {"name": NAME}, "rules": [leases]}


def _binding(name: str, kind: str, role: str) -> Object:
    return {
        "metadata": {"name": name},
        "roleRef": {"apiGroup": GROUP, "kind": kind, "name": role},
        "subjects": [{"apiGroup": GROUP, "kind": "User", "name": USER}],
    }


def _flow_schema() -> Object:
    """As that of `system:kube-scheduler`, after those that Moorage installs."""
    everything = {"apiGroups": ["*"], "resources": ["*"], "verbs": ["*"], "namespaces": ["*"]}
    rule = {
        "subjects": [{"kind": "User", "user": {"name": USER}}],
        "resourceRules": [{**everything, "clusterScope": True}],
    }
    spec = {
        "priorityLevelConfiguration": {"name": "workload-high"},
        "matchingPrecedence": 801,
        "distinguisherMethod": {"type": "ByUser"},
        "rules": [rule],
    }
    return {"metadata": {"name": NAME}, "spec": spec}
