"""The least that a device plugin can do: devices that are always there, and an empty answer.

    python -m bench.do_nothing_device_plugin RESOURCE COUNT [--kubelet-root DIR]

No API server, no slots, no reconciliation: whatever shares devices between nodes does more than
this. It stands on the same gRPC server as the driver.
"""

from __future__ import annotations

import argparse
import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import grpc.aio

from driver.kubelet_api.deviceplugin.v1beta1 import api_pb2 as v1beta1
from driver.kubelet_api.deviceplugin.v1beta1 import api_pb2_grpc as v1beta1_grpc

SOCKET = "do-nothing.sock"


@dataclass
class DoNothingPlugin(v1beta1_grpc.DevicePluginServicer):
    """One resource with devices `<prefix>-<n>`, all Healthy, and no options."""

    prefix: str
    count: int

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
        empty = v1beta1.ContainerAllocateResponse()
        return v1beta1.AllocateResponse(
            container_responses=[empty] * len(request.container_requests)
        )


async def serve(folder: Path, resource: str, count: int) -> None:
    """Serve and register with the kubelet, until cancelled."""
    socket = folder / SOCKET
    socket.unlink(missing_ok=True)
    server = grpc.aio.server()
    plugin = DoNothingPlugin(resource.rpartition("/")[2], count)
    v1beta1_grpc.add_DevicePluginServicer_to_server(plugin, server)
    server.add_insecure_port(f"unix:{socket}")
    await server.start()
    async with grpc.aio.insecure_channel(f"unix:{folder / 'kubelet.sock'}") as channel:
        register: Callable[..., Any] = v1beta1_grpc.RegistrationStub(channel).Register
        await register(
            v1beta1.RegisterRequest(version="v1beta1", endpoint=SOCKET, resource_name=resource)
        )
    await server.wait_for_termination()


def main(argv: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("resource")
    parser.add_argument("count", type=int)
    parser.add_argument("--kubelet-root", type=Path, default=Path("/var/lib/kubelet"))
    options = parser.parse_args(argv)
    folder = options.kubelet_root / "device-plugins"
    asyncio.run(serve(folder, options.resource, options.count))


if __name__ == "__main__":
    main()
