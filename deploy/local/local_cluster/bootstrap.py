"""What a fresh cluster needs beyond its processes: images, nodes that are Ready."""

from __future__ import annotations

from typing import Any

from local_cluster import containerd_images, fake_nodes
from local_cluster.apiserver import ApiServer
from local_cluster.blueprint import Blueprint
from local_cluster.errors import ConditionTimeoutError
from local_cluster.health import wait_until

READY_SECONDS = 90.0
NODES = "/api/v1/nodes"


def bootstrap(blueprint: Blueprint, *, changed: bool) -> None:
    """Repeatable; skips what a cluster without changes has already."""
    with ApiServer(blueprint.addresses.server, blueprint.layout.pki) as api:
        if changed:
            containerd_images.import_basics(blueprint)
        _remove_lost_nodes(api, blueprint)
        _wait_ready(api, blueprint)


def _remove_lost_nodes(api: ApiServer, blueprint: Blueprint) -> None:
    """Node objects that an earlier `up` asked for and this one does not."""
    planned = _planned_nodes(blueprint)
    for node in api.get(NODES)["items"]:
        name = node["metadata"]["name"]
        if name not in planned:
            api.delete(f"{NODES}/{name}")


def _planned_nodes(blueprint: Blueprint) -> set[str]:
    real = {node.name for node in blueprint.nodes}
    return real | set(fake_nodes.names(blueprint.settings.fake_nodes))


def _wait_ready(api: ApiServer, blueprint: Blueprint) -> None:
    planned = _planned_nodes(blueprint)
    if not wait_until(lambda: planned <= ready_nodes(api), READY_SECONDS):
        missing = sorted(planned - ready_nodes(api))
        logs = blueprint.layout.logs
        raise ConditionTimeoutError(f"{', '.join(missing)} not Ready; see {logs}/kubelet-*.log")


def ready_nodes(api: ApiServer) -> set[str]:
    """Names of nodes that are Ready and that nothing keeps pods away from."""
    return {
        node["metadata"]["name"]
        for node in api.get(NODES)["items"]
        if _is_ready(node) and node["spec"].get("taints", []) in ([], [fake_nodes.TAINT])
    }


def _is_ready(node: dict[str, Any]) -> bool:
    conditions = node["status"].get("conditions", [])
    return any(entry["type"] == "Ready" and entry["status"] == "True" for entry in conditions)
