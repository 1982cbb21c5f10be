"""Another DRA driver on the node, which fails while a file is there.

python -m tests.e2e.driver.other_driver FILE
"""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path
from typing import Any

import grpc.aio

from bench.do_nothing_dra_driver import DoNothingPlugin
from driver.kubelet_api.dra.v1 import api_pb2 as dra
from driver.kubelet_api.dra.v1 import api_pb2_grpc as dra_grpc
from driver.kubelet_api.pluginregistration.v1 import api_pb2 as registration
from driver.kubelet_api.pluginregistration.v1 import api_pb2_grpc as registration_grpc

NAME = "other.example.com"
FAILURE = "the other one fails"
SOCKET = f"/var/lib/kubelet/plugins_registry/{NAME}-reg.sock"


class Plugin(DoNothingPlugin, registration_grpc.RegistrationServicer):
    """Grants whatever it is asked for, or nothing."""

    def __init__(self, fails: Path) -> None:
        self._fails = fails

    async def GetInfo(self, request: Any, context: Any) -> registration.PluginInfo:  # noqa: N802
        return registration.PluginInfo(
            type="DRAPlugin", name=NAME, endpoint=SOCKET, supported_versions=["v1.DRAPlugin"]
        )

    async def NotifyRegistrationStatus(  # noqa: N802
        self, request: Any, context: Any
    ) -> registration.RegistrationStatusResponse:
        return registration.RegistrationStatusResponse()

    async def NodePrepareResources(  # noqa: N802
        self, request: dra.NodePrepareResourcesRequest, context: Any
    ) -> dra.NodePrepareResourcesResponse:
        if self._fails.exists():
            entry = dra.NodePrepareResourceResponse(error=FAILURE)
            entries = {claim.uid: entry for claim in request.claims}
            return dra.NodePrepareResourcesResponse(claims=entries)
        return await super().NodePrepareResources(request, context)

    async def NodeUnprepareResources(  # noqa: N802
        self, request: dra.NodeUnprepareResourcesRequest, context: Any
    ) -> dra.NodeUnprepareResourcesResponse:
        if self._fails.exists():
            self._fails.write_text("asked to unprepare")
            entry = dra.NodeUnprepareResourceResponse(error=FAILURE)
            entries = {claim.uid: entry for claim in request.claims}
            return dra.NodeUnprepareResourcesResponse(claims=entries)
        return await super().NodeUnprepareResources(request, context)


async def serve(fails: Path) -> None:
    """Serve until killed, all at one socket."""
    server, plugin = grpc.aio.server(), Plugin(fails)
    dra_grpc.add_DRAPluginServicer_to_server(plugin, server)
    registration_grpc.add_RegistrationServicer_to_server(plugin, server)
    server.add_insecure_port(f"unix:{SOCKET}")
    await server.start()
    await server.wait_for_termination()


if __name__ == "__main__":
    asyncio.run(serve(Path(sys.argv[1])))
