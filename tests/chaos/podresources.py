"""The kubelet's pod-resources API, asked without the product's stubs.

The contract is compiled from upstream's file where it is asked, so that a mistake in what the
product generated of it is not the checker's, too.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import grpc

from tests.chaos.node_reports import Listed
from tests.contracts import POD_RESOURCES, methods

SOCKET = "/var/lib/kubelet/pod-resources/kubelet.sock"
SECONDS = 5.0


def listed(root: Path) -> tuple[Listed, ...] | None:
    """All containers of a node that the kubelet lists; nothing if it does not answer.

    Args:
        root: The node's file system, as seen from here.
    """
    method = methods(POD_RESOURCES)["List"]
    with grpc.insecure_channel(f"unix:{root}{SOCKET}") as channel:
        try:
            return tuple(_containers(method.on(channel)(method.request(), timeout=SECONDS)))
        except grpc.RpcError:
            return None


def _containers(answer: Any) -> Iterator[Listed]:
    for pod in answer.pod_resources:
        for container in pod.containers:
            devices: dict[str, tuple[str, ...]] = {}
            for each in container.devices:
                before = devices.get(each.resource_name, ())
                devices[each.resource_name] = (*before, *each.device_ids)
            claims = tuple((c.claim_namespace, c.claim_name) for c in container.dynamic_resources)
            yield Listed((pod.namespace, pod.name), container.name, devices, claims)
