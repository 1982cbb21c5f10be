"""The least that a device plugin can do: devices that are always there, and an empty answer.

    python -m bench.do_nothing_device_plugin RESOURCE COUNT [--writes INSTANCE --kubeconfig FILE]

No API server, no slots, no reconciliation: whatever shares devices between nodes does more than
this. With `--writes` it does the least of that: one write of one slot, if nobody wrote first, and
the answer. It stands on the same gRPC server as the driver.
"""

from __future__ import annotations

import argparse
import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import grpc.aio

from driver.kubelet_api.deviceplugin.v1beta1 import api_pb2 as v1beta1
from driver.kubelet_api.deviceplugin.v1beta1 import api_pb2_grpc as v1beta1_grpc
from kube.calls.api import ApiClient, connect
from kube.kinds import INSTANCES


def socket_name(resource: str) -> str:
    """Where a resource is served, in the kubelet's folder."""
    return f"{resource.rpartition('/')[2]}.sock"


@dataclass
class SlotWriter:
    """Takes slots of one Instance, one at a time.

    It frees none, so that its Instance grows as the driver's does while a client asks for slots.
    """

    client: ApiClient
    name: str
    version: str = ""
    lock: asyncio.Lock = field(default_factory=asyncio.Lock)

    async def take(self, slot: str) -> None:
        async with self.lock:
            spec = {"deviceUsage": {slot: "baseline"}}
            patch = {"metadata": {"resourceVersion": self.version}, "spec": spec}
            answer = await self.client.merge_patch(INSTANCES.at(self.name, "default"), patch)
            self.version = answer["metadata"]["resourceVersion"]


@dataclass
class DoNothingPlugin(v1beta1_grpc.DevicePluginServicer):
    """One resource with devices `<prefix>-<n>`, all Healthy, and no options."""

    prefix: str
    count: int
    writer: SlotWriter | None = None

    def GetDevicePluginOptions(  # noqa: N802
        self, request: Any, context: Any
    ) -> v1beta1.DevicePluginOptions:
        return v1beta1.DevicePluginOptions()

    async def ListAndWatch(  # noqa: N802
        self, request: Any, context: Any
    ) -> AsyncIterator[v1beta1.ListAndWatchResponse]:
        ids = (f"{self.prefix}-{number}" for number in range(self.count))
        yield v1beta1.ListAndWatchResponse(
            devices=[v1beta1.Device(ID=name, health="Healthy") for name in ids]
        )
        await asyncio.Event().wait()

    async def GetPreferredAllocation(  # noqa: N802
        self, request: Any, context: Any
    ) -> v1beta1.PreferredAllocationResponse:
        raise NotImplementedError

    async def PreStartContainer(  # noqa: N802
        self, request: Any, context: Any
    ) -> v1beta1.PreStartContainerResponse:
        raise NotImplementedError

    async def Allocate(  # noqa: N802
        self, request: v1beta1.AllocateRequest, context: Any
    ) -> v1beta1.AllocateResponse:
        if self.writer:
            await self.writer.take(request.container_requests[0].devices_ids[0])
        empty = v1beta1.ContainerAllocateResponse()
        return v1beta1.AllocateResponse(
            container_responses=[empty] * len(request.container_requests)
        )


async def serve(folder: Path, resource: str, count: int, writer: SlotWriter | None = None) -> None:
    """Serve and register with the kubelet, until cancelled."""
    socket = folder / socket_name(resource)
    socket.unlink(missing_ok=True)
    server = grpc.aio.server()
    plugin = DoNothingPlugin(resource.rpartition("/")[2], count, writer)
    v1beta1_grpc.add_DevicePluginServicer_to_server(plugin, server)
    server.add_insecure_port(f"unix:{socket}")
    await server.start()
    async with grpc.aio.insecure_channel(f"unix:{folder / 'kubelet.sock'}") as channel:
        register: Callable[..., Any] = v1beta1_grpc.RegistrationStub(channel).Register
        await register(
            v1beta1.RegisterRequest(version="v1beta1", endpoint=socket.name, resource_name=resource)
        )
    await server.wait_for_termination()


async def serve_writing(folder: Path, options: argparse.Namespace) -> None:
    """Serve as one that writes a slot of this Instance at each Allocate."""
    async with connect(options.kubeconfig) as client:
        writer = SlotWriter(client, options.writes)
        found = await client.get(INSTANCES.at(options.writes, "default"))
        writer.version = found["metadata"]["resourceVersion"]
        await serve(folder, options.resource, options.count, writer)


def main(argv: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("resource")
    parser.add_argument("count", type=int)
    parser.add_argument("--kubelet-root", type=Path, default=Path("/var/lib/kubelet"))
    parser.add_argument("--writes", metavar="INSTANCE", help="takes a slot of this one")
    parser.add_argument("--kubeconfig", type=Path)
    options = parser.parse_args(argv)
    folder = options.kubelet_root / "device-plugins"
    if options.writes:
        asyncio.run(serve_writing(folder, options))
    else:
        asyncio.run(serve(folder, options.resource, options.count))


if __name__ == "__main__":
    main()
