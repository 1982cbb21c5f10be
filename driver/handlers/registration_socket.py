"""The socket at which discovery handlers register, Akri's `agent-registration.sock`.

Another agent may serve there: Akri's own, or the driver of the pod that this one replaces. This
driver serves only after that agent has ended.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any, NoReturn

import grpc.aio

from driver.discovery_api.v0 import discovery_pb2 as v0
from driver.discovery_api.v0 import discovery_pb2_grpc as v0_grpc
from driver.handlers.external_handlers import NotAllowedError
from driver.handlers.messages import registration_of
from driver.handlers.registrations import Registration
from driver.handlers.table import TableFullError
from driver.plumbing.kubelet_sockets import Access, Socket, SocketError, is_dead

logger = logging.getLogger(__name__)

LOOK_SECONDS = 1.0
GRACE_SECONDS = 1.0

Register = Callable[[Registration], Awaitable[None]]

_Context = grpc.aio.ServicerContext[Any, Any]


class Registrations(v0_grpc.RegistrationServicer):
    """`v0.Registration`: receives registrations."""

    def __init__(self, register: Register) -> None:
        self._register = register

    async def RegisterDiscoveryHandler(
        self, request: v0.RegisterDiscoveryHandlerRequest, context: _Context
    ) -> v0.Empty:
        registration = registration_of(request)
        if isinstance(registration, str):
            logger.warning("discovery handler not registered: %s", registration)
            await context.abort(grpc.StatusCode.INVALID_ARGUMENT, registration)
        try:
            await self._register(registration)
        except NotAllowedError as error:
            logger.warning("discovery handler not registered: %s", error)
            await context.abort(grpc.StatusCode.PERMISSION_DENIED, str(error))
        except TableFullError as error:
            logger.warning("discovery handler not registered: %s", error)
            await context.abort(grpc.StatusCode.RESOURCE_EXHAUSTED, str(error))
        return v0.Empty()


class RegistrationSocket:
    """Serves at the path whenever no other agent does."""

    def __init__(self, path: Path, register: Register, access: Access | None = None) -> None:
        self._path = path
        self._register = register
        self._access = access
        self._socket: Socket | None = None
        self._logged = ""

    async def serve(self) -> NoReturn:
        """Serve until cancelled."""
        try:
            while True:
                try:
                    await self._look()
                except (SocketError, OSError) as error:
                    self._log_problem(str(error))
                await asyncio.sleep(LOOK_SECONDS)
        finally:
            await self._close()

    async def _look(self) -> None:
        if self._socket is not None and self._socket.is_own():
            return
        await self._close()
        if self._path.exists() and not (self._path.is_socket() and is_dead(self._path)):
            self._log_problem(
                f"another agent serves {self._path}; handlers register with that agent"
            )
            return
        if self._access is not None:
            self._path.parent.mkdir(parents=True, exist_ok=True)
            self._access.give(self._path.parent)
        socket = Socket(self._path, self._add_service, access=self._access)
        await socket.open()
        self._socket, self._logged = socket, ""
        logger.info("discovery handlers may register socket=%s", self._path)

    async def _close(self) -> None:
        socket, self._socket = self._socket, None
        if socket is not None:
            await socket.close(GRACE_SECONDS)

    def _add_service(self, server: grpc.aio.Server) -> None:
        v0_grpc.add_RegistrationServicer_to_server(Registrations(self._register), server)

    def _log_problem(self, problem: str) -> None:
        if problem != self._logged:
            logger.warning("discovery handlers cannot register here now: %s", problem)
            self._logged = problem
