"""The kubelet's pod-resources API, asked without the product's stubs.

The contract is compiled from upstream's file where it is asked, so that a mistake in what the
product generated of it is not the checker's, too.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import grpc
from google.protobuf import descriptor_pb2, descriptor_pool, message_factory

from tests.chaos.node_reports import Listed

FOLDER = Path(__file__).parents[2] / "proto/podresources/v1"
SOCKET = "/var/lib/kubelet/pod-resources/kubelet.sock"
SECONDS = 5.0


def listed(root: Path) -> tuple[Listed, ...] | None:
    """All containers of a node that the kubelet lists; nothing if it does not answer.

    Args:
        root: The node's file system, as seen from here.
    """
    request, answer = _messages()
    with grpc.insecure_channel(f"unix:{root}{SOCKET}") as channel:
        call = channel.unary_unary(
            "/v1.PodResourcesLister/List",
            request_serializer=request.SerializeToString,
            response_deserializer=answer.FromString,
        )
        try:
            return tuple(_containers(call(request(), timeout=SECONDS)))
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


@cache
def _messages() -> tuple[Any, Any]:
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder, "set")
        words = (f"-I{FOLDER}", f"--descriptor_set_out={out}", "--include_imports", "api.proto")
        subprocess.run((sys.executable, "-m", "grpc_tools.protoc", *words), check=True)
        found = descriptor_pb2.FileDescriptorSet.FromString(out.read_bytes())
    pool = descriptor_pool.DescriptorPool()
    for file in found.file:
        pool.Add(file)
    names = ("v1.ListPodResourcesRequest", "v1.ListPodResourcesResponse")
    request, answer = (
        message_factory.GetMessageClass(pool.FindMessageTypeByName(name)) for name in names
    )
    return request, answer
