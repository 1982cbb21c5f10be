"""The least that a DRA driver can be: a gRPC server that grants whatever it is asked for.

    python -m bench.do_nothing_dra_driver SOCKET

It reads no claim and writes no file, so what a call takes is the server's, the client's and the
socket's. It stands on the same gRPC server as the driver.
"""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path
from typing import Any

import grpc.aio

from driver.kubelet_api.dra.v1 import api_pb2 as v1
from driver.kubelet_api.dra.v1 import api_pb2_grpc as v1_grpc


class DoNothingPlugin(v1_grpc.DRAPluginServicer):
    """An entry for each claim, without devices."""

    async def NodePrepareResources(  # noqa: N802
        self, request: v1.NodePrepareResourcesRequest, context: Any
    ) -> v1.NodePrepareResourcesResponse:
        entries = {claim.uid: v1.NodePrepareResourceResponse() for claim in request.claims}
        return v1.NodePrepareResourcesResponse(claims=entries)

    async def NodeUnprepareResources(  # noqa: N802
        self, request: v1.NodeUnprepareResourcesRequest, context: Any
    ) -> v1.NodeUnprepareResourcesResponse:
        entries = {claim.uid: v1.NodeUnprepareResourceResponse() for claim in request.claims}
        return v1.NodeUnprepareResourcesResponse(claims=entries)


async def serve(socket: Path) -> None:
    """Serve until cancelled."""
    server = grpc.aio.server()
    v1_grpc.add_DRAPluginServicer_to_server(DoNothingPlugin(), server)
    server.add_insecure_port(f"unix:{socket}")
    await server.start()
    await server.wait_for_termination()


if __name__ == "__main__":
    asyncio.run(serve(Path(sys.argv[1])))
