"""A fake of the kubelet's pod-resources server, which can be slow, away, or out of its mind."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import grpc
import grpc.aio

from driver.kubelet_api.podresources.v1 import api_pb2 as v1

SERVICE = "v1.PodResourcesLister"


@dataclass
class FakePodResources:
    """Serves `<folder>/kubelet.sock` for as long as the block runs.

    Attributes:
        answer: What List answers; bytes go out as they are.
        stuck: List does not answer.
        refuse: List fails with this.
        on_list: Called when it is asked.
    """

    folder: Path
    answer: v1.ListPodResourcesResponse | bytes = field(default_factory=v1.ListPodResourcesResponse)
    stuck: bool = False
    refuse: str = ""
    on_list: Callable[[], object] = field(default=lambda: None)
    _server: grpc.aio.Server | None = None

    def give(self, pod: str, container: str, resource: str, *ids: str) -> None:
        """Add a pod with one container that has these devices."""
        assert not isinstance(self.answer, bytes)
        namespace, _, name = pod.partition("/")
        devices = v1.ContainerDevices(resource_name=resource, device_ids=ids)
        self.answer.pod_resources.append(
            v1.PodResources(
                namespace=namespace,
                name=name,
                containers=[v1.ContainerResources(name=container, devices=[devices])],
            )
        )

    async def __aenter__(self) -> Self:
        self.folder.mkdir(parents=True, exist_ok=True)
        self._server = grpc.aio.server(options=[("grpc.max_send_message_length", -1)])
        handler: grpc.RpcMethodHandler[bytes, bytes] = grpc.unary_unary_rpc_method_handler(
            self._list
        )
        self._server.add_generic_rpc_handlers(
            (grpc.method_handlers_generic_handler(SERVICE, {"List": handler}),)
        )
        self._server.add_insecure_port(f"unix:{self.folder / 'kubelet.sock'}")
        await self._server.start()
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        assert self._server is not None
        await self._server.stop(None)

    async def _list(self, request: bytes, context: grpc.aio.ServicerContext[Any, Any]) -> bytes:
        self.on_list()
        if self.stuck:
            await asyncio.Event().wait()
        if self.refuse:
            await context.abort(grpc.StatusCode.RESOURCE_EXHAUSTED, self.refuse)
        if isinstance(self.answer, bytes):
            return self.answer
        return self.answer.SerializeToString()
