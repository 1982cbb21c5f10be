"""Tokens and kubeconfigs of ServiceAccounts, for components that run as host processes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from local_cluster.apiserver import ApiServer
from local_cluster.configurations import kubeconfig
from local_cluster.errors import ApiError
from local_cluster.files import write_atomically

TOKEN_SECONDS = 24 * 3600


def token_request(node: dict[str, Any] | None) -> dict[str, Any]:
    """Bound to a node the token says so, as the token of a pod on that node does."""
    spec: dict[str, Any] = {"expirationSeconds": TOKEN_SECONDS}
    if node is not None:
        spec["boundObjectRef"] = {
            "apiVersion": "v1",
            "kind": "Node",
            "name": node["metadata"]["name"],
            "uid": node["metadata"]["uid"],
        }
    return {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": spec}


def request_token(api: ApiServer, namespace: str, name: str, node: str | None) -> str:
    """A token of the ServiceAccount, which is made if it does not exist."""
    accounts = f"/api/v1/namespaces/{namespace}/serviceaccounts"
    try:
        api.create(accounts, {"metadata": {"name": name}})
    except ApiError as error:
        if error.reason != "AlreadyExists":
            raise
    bound_to = api.get(f"/api/v1/nodes/{node}") if node else None
    answer = api.create(f"{accounts}/{name}/token", token_request(bound_to))
    return str(answer["status"]["token"])


def write_kubeconfig(path: Path, server: str, ca: Path, token: str) -> Path:
    """The token stands in the file: nothing else has to be kept beside it."""
    write_atomically(path, kubeconfig(server, ca, {"token": token}))
    return path
