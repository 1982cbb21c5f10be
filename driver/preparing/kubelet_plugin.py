"""The kubelet's plugin for Dynamic Resource Allocation.

    kubelet ──GetInfo, NotifyRegistrationStatus──► registration socket   (in plugins_registry)
            ──NodePrepareResources, NodeUnprepareResources──► DRA socket ──► kubelet_claims
            ──NodeWatchResources──► DRA socket ◄── health of the devices

This module speaks gRPC and nothing else: messages in, messages out.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager
from typing import Any

import grpc.aio

from driver.api import DRIVER_NAME, ClaimUid
from driver.kubelet_api.dra.v1 import api_pb2 as v1
from driver.kubelet_api.dra.v1 import api_pb2_grpc as v1_grpc
from driver.kubelet_api.dra_health.v1 import api_pb2 as health
from driver.kubelet_api.dra_health.v1 import api_pb2_grpc as health_grpc
from driver.kubelet_api.pluginregistration.v1 import api_pb2 as registration
from driver.kubelet_api.pluginregistration.v1 import api_pb2_grpc as registration_grpc
from driver.plumbing.kubelet_sockets import KubeletPaths, Socket, remove_dead_sockets
from driver.plumbing.prometheus import CLAIM_REQUEST_SECONDS, CLAIM_REQUESTS
from driver.preparing.files import cdi
from driver.preparing.files.prepared import ClaimReference, PreparedClaim, PreparedDevice
from driver.preparing.grants.claims import Failure
from driver.preparing.grants.device_views import InstanceSource
from driver.preparing.kubelet_claims import KubeletClaims
from driver.preparing.kubelet_health import Health

logger = logging.getLogger(__name__)

SERVICES = (
    "v1.DRAPlugin",
    "v1beta1.DRAPlugin",
    "v1.DRAResourceHealth",
    "v1alpha1.DRAResourceHealth",
)
"""Names of the services; of each kind the kubelet takes the first that it supports."""

WATCH_SECONDS = 1.0
"""How soon a lost socket is noticed."""


GRACE_SECONDS = 5.0

_Context = grpc.aio.ServicerContext[Any, Any]


class Registration(registration_grpc.RegistrationServicer):
    """Registers this plugin with the kubelet.

    Attributes:
        problem: Why the kubelet does not use this plugin; "" if it does.
    """

    def __init__(self, endpoint: str) -> None:
        self.problem = "the kubelet has not asked for this plugin yet"
        self._endpoint = endpoint

    async def GetInfo(
        self, request: registration.InfoRequest, context: _Context
    ) -> registration.PluginInfo:
        return registration.PluginInfo(
            type="DRAPlugin",
            name=DRIVER_NAME,
            endpoint=self._endpoint,
            supported_versions=SERVICES,
        )

    async def NotifyRegistrationStatus(
        self, request: registration.RegistrationStatus, context: _Context
    ) -> registration.RegistrationStatusResponse:
        if request.plugin_registered:
            self.problem = ""
            logger.info("Registered with the kubelet")
        else:
            self.problem = f"the kubelet refused this plugin: {request.error}"
            logger.error("Not registered: %s", self.problem)
        return registration.RegistrationStatusResponse()


class Plugin(v1_grpc.DRAPluginServicer):
    """`v1.DRAPlugin`: an answer has an entry for each requested claim."""

    def __init__(self, claims: KubeletClaims) -> None:
        self._claims = claims

    async def NodePrepareResources(
        self, request: v1.NodePrepareResourcesRequest, context: _Context
    ) -> v1.NodePrepareResourcesResponse:
        with CLAIM_REQUEST_SECONDS.labels("prepare").time():
            answers = await self._claims.prepare(_references(request.claims))
        _count("prepare", answers.values())
        return v1.NodePrepareResourcesResponse(
            claims={uid: _prepare_response(answer) for uid, answer in answers.items()}
        )

    async def NodeUnprepareResources(
        self, request: v1.NodeUnprepareResourcesRequest, context: _Context
    ) -> v1.NodeUnprepareResourcesResponse:
        with CLAIM_REQUEST_SECONDS.labels("unprepare").time():
            answers = await self._claims.unprepare(_references(request.claims))
        _count("unprepare", answers.values())
        return v1.NodeUnprepareResourcesResponse(
            claims={
                uid: v1.NodeUnprepareResourceResponse(
                    error=answer.sentence if isinstance(answer, Failure) else ""
                )
                for uid, answer in answers.items()
            }
        )


def _references(claims: Iterable[v1.Claim]) -> list[ClaimReference]:
    return [ClaimReference(c.namespace, c.name, ClaimUid(c.uid)) for c in claims]


def _count(operation: str, answers: Iterable[object]) -> None:
    for answer in answers:
        result = "error" if isinstance(answer, Failure) else "ok"
        CLAIM_REQUESTS.labels(operation, result).inc()


def _prepare_response(answer: PreparedClaim | Failure) -> v1.NodePrepareResourceResponse:
    if isinstance(answer, Failure):
        return v1.NodePrepareResourceResponse(error=answer.sentence)
    return v1.NodePrepareResourceResponse(devices=[_device(d) for d in answer.devices])


def _device(device: PreparedDevice) -> v1.Device:
    return v1.Device(
        request_names=[device.allocated.request],
        pool_name=device.allocated.pool,
        device_name=device.allocated.device,
        cdi_device_ids=cdi.device_ids(device),
        share_id=device.allocated.share_id,
    )


def _older_versions(plugin: Plugin, devices_health: Health) -> list[grpc.GenericRpcHandler]:
    """The services under the names of v1beta1 and v1alpha1; their messages are compatible with v1.

    v1beta1 has no `share_id`; a kubelet of that version ignores the field.
    """
    claims: dict[str, grpc.RpcMethodHandler[Any, Any]] = {
        "NodePrepareResources": grpc.unary_unary_rpc_method_handler(
            plugin.NodePrepareResources,
            v1.NodePrepareResourcesRequest.FromString,
            v1.NodePrepareResourcesResponse.SerializeToString,
        ),
        "NodeUnprepareResources": grpc.unary_unary_rpc_method_handler(
            plugin.NodeUnprepareResources,
            v1.NodeUnprepareResourcesRequest.FromString,
            v1.NodeUnprepareResourcesResponse.SerializeToString,
        ),
    }
    watch = grpc.unary_stream_rpc_method_handler(
        devices_health.NodeWatchResources,
        health.NodeWatchResourcesRequest.FromString,
        health.NodeWatchResourcesResponse.SerializeToString,
    )
    return [
        grpc.method_handlers_generic_handler(service, handlers)
        for service, handlers in (
            ("k8s.io.kubelet.pkg.apis.dra.v1beta1.DRAPlugin", claims),
            ("v1alpha1.DRAResourceHealth", {"NodeWatchResources": watch}),
        )
    ]


@asynccontextmanager
async def serve(
    paths: KubeletPaths, claims: KubeletClaims, source: InstanceSource
) -> AsyncIterator[Registration]:
    """Serve the kubelet until the block ends; yield the state of the registration.

    Raises:
        SocketError: If a socket cannot be opened.
    """
    plugin, devices_health = Plugin(claims), Health(claims, source)
    accepted = Registration(str(paths.dra_socket))

    def add_services(server: grpc.aio.Server) -> None:
        v1_grpc.add_DRAPluginServicer_to_server(plugin, server)
        health_grpc.add_DRAResourceHealthServicer_to_server(devices_health, server)
        server.add_generic_rpc_handlers(_older_versions(plugin, devices_health))

    def add_registration(server: grpc.aio.Server) -> None:
        registration_grpc.add_RegistrationServicer_to_server(accepted, server)

    sockets = (
        Socket(paths.dra_socket, add_services),
        Socket(paths.registration_socket, add_registration),
    )
    await claims.recover()
    await asyncio.to_thread(remove_dead_sockets, paths)
    # The kubelet calls as soon as it sees the second socket, so the first must answer before.
    # They are removed in reverse order.
    try:
        for socket in sockets:
            await socket.open()
        async with _watched(sockets):
            yield accepted
    finally:
        devices_health.end()
        for socket in reversed(sockets):
            await socket.close(GRACE_SECONDS)
        await claims.calls.finish(GRACE_SECONDS)


@asynccontextmanager
async def _watched(sockets: Iterable[Socket]) -> AsyncIterator[None]:
    task = asyncio.create_task(_watch(sockets))
    try:
        yield
    finally:
        task.cancel()
        await asyncio.wait([task])


async def _watch(sockets: Iterable[Socket]) -> None:
    """Open missing sockets again: the kubelet's folders may have been cleared."""
    while True:
        await asyncio.sleep(WATCH_SECONDS)
        for socket in sockets:
            try:
                if socket.is_lost():
                    logger.warning("Socket %s is gone; opening it again", socket.path)
                    await socket.open_again()
            except Exception:
                logger.exception("Socket %s cannot be opened again", socket.path)
