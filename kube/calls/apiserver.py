"""The client of the API server: one request, and one response or one error."""

import asyncio
import contextlib
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from types import MappingProxyType
from typing import Any

from aiohttp import (
    ClientConnectorError,
    ClientError,
    ClientResponse,
    ClientTimeout,
    ConnectionTimeoutError,
)

from kube.calls import requests
from kube.calls.apiserver_access import kubeconfig_access, service_account
from kube.calls.apiserver_reads import Answer, ApiReader, lost, refusal
from kube.calls.apiserver_transport import Transport
from kube.calls.errors import UnavailableError, said
from kube.calls.frames import Frame, Lines, frames_of
from kube.calls.read_requests import Request
from kube.calls.requests import NO_PRECONDITIONS, WRITE, Preconditions, WriteOptions
from kube.objects import JsonObject
from kube.resources import ObjectPath, Resource, Selection

CONNECT_SECONDS = 10.0
NO_HEADERS: Mapping[str, str] = MappingProxyType({})
CHUNK_BYTES = 2**16


class ApiClient(ApiReader):
    """All verbs of the API on raw JSON; every failure is an ApiError."""

    def __init__(self, transport: Transport, headers: Mapping[str, str] = NO_HEADERS) -> None:
        self.transport = transport
        self._headers = headers
        self._answered_at = float("-inf")

    @property
    def namespace(self) -> str:
        """The namespace where the user names none, as for kubectl."""
        return self.transport.namespace

    def impersonating(self, user: str) -> "ApiClient":
        """A client of the same connections that acts as this user, whose rights then decide.

        Of a ServiceAccount the API server adds the groups by itself.
        """
        return ApiClient(self.transport, {"Impersonate-User": user})

    async def create(
        self,
        resource: Resource,
        body: JsonObject,
        *,
        subresource: str = "",
        options: WriteOptions = WRITE,
    ) -> JsonObject:
        return await self._call(requests.create(resource, body, subresource, options))

    async def replace(
        self, path: ObjectPath, body: JsonObject, *, options: WriteOptions = WRITE
    ) -> JsonObject:
        """Store the body; its metadata.resourceVersion, if given, is a precondition."""
        return await self._call(requests.replace(path, body, options))

    async def delete(
        self,
        path: ObjectPath,
        *,
        preconditions: Preconditions = NO_PRECONDITIONS,
        grace_period_seconds: int | None = None,
        in_background: bool = False,
        options: WriteOptions = WRITE,
    ) -> JsonObject:
        """Delete an object; `in_background`: and its dependents, which a Job orphans otherwise."""
        how = requests.Deletion(preconditions, grace_period_seconds, in_background)
        return await self._call(requests.delete(path, how, options))

    async def merge_patch(
        self,
        path: ObjectPath,
        patch: JsonObject,
        *,
        preconditions: Preconditions = NO_PRECONDITIONS,
        options: WriteOptions = WRITE,
    ) -> JsonObject:
        request = requests.patch(path, patch, requests.MERGE_PATCH, preconditions, options)
        return await self._call(request)

    async def strategic_merge_patch(
        self,
        path: ObjectPath,
        patch: JsonObject,
        *,
        preconditions: Preconditions = NO_PRECONDITIONS,
        options: WriteOptions = WRITE,
    ) -> JsonObject:
        """Merge lists by their keys, for Kubernetes' own kinds: entries of other managers stay.

        Unlike server-side apply without an entry, `$patch: delete` removes no field without an
        owner that the API server itself wrote, such as the rest of a new pod's status.
        """
        kind = requests.STRATEGIC_MERGE_PATCH
        request = requests.patch(path, patch, kind, preconditions, options)
        return await self._call(request)

    async def json_patch(
        self,
        path: ObjectPath,
        operations: Sequence[JsonObject],
        *,
        options: WriteOptions = WRITE,
    ) -> JsonObject:
        """Carry out RFC 6902 operations; a failed `test` among them is an InvalidError."""
        return await self._call(requests.json_patch(path, operations, options))

    async def apply(
        self,
        path: ObjectPath,
        body: JsonObject,
        *,
        force: bool = False,
        preconditions: Preconditions = NO_PRECONDITIONS,
        options: WriteOptions,
    ) -> JsonObject:
        """Server-side apply as `options.field_manager`; `force` takes over conflicting fields."""
        request = requests.apply(path, body, force, preconditions, options)
        return await self._call(request)

    @asynccontextmanager
    async def watch(
        self,
        selection: Selection,
        resource_version: int,
        *,
        seconds: int,
        idle_seconds: float,
        shape: type[Any] | None = None,
    ) -> AsyncIterator[AsyncIterator[Frame]]:
        """Open a watch; leaving the context closes it. `shape`: see `WatchSettings`."""
        request = requests.watch(selection, resource_version, seconds, idle_seconds)
        limits = ClientTimeout(sock_connect=CONNECT_SECONDS, sock_read=idle_seconds)
        response = await self._open(request, limits)
        async with contextlib.aclosing(_frames(response, frames_of(shape))) as frames:
            try:
                yield frames
            finally:
                response.close()

    async def _answer(self, request: Request) -> Answer:
        with self._calling(request.what):
            response = await self._open(request)
            async with response:
                return Answer(response.status, response.headers, await response.read())

    async def _open(self, request: Request, limits: ClientTimeout | None = None) -> ClientResponse:
        """The response once its head has arrived; the limits include its body."""
        limits = limits or ClientTimeout(request.timeout_seconds, sock_connect=CONNECT_SECONDS)
        headers = {**self._headers, "Content-Type": request.content_type}
        with self._calling(request.what):
            response = await self.transport.send(
                request.method, request.url, headers, request.body, limits
            )
            self._answered_at = _now()
            if response.status < 400:
                return response
            async with response:
                raise refusal(Answer(response.status, response.headers, await response.read()))

    @contextlib.contextmanager
    def _calling(self, what: str) -> Iterator[None]:
        """Translate errors, and say of a lost call whether the server answered others meanwhile."""
        began = _now()
        try:
            with _translated(what):
                yield
        except UnavailableError as error:
            if not error.status:
                error.answered_others = self._answered_at > began
            raise


@asynccontextmanager
async def connect(
    kubeconfig: Path | None = None, *, user_agent: str = "moorage", context: str = ""
) -> AsyncIterator[ApiClient]:
    """Yield a client of the cluster of `kubeconfig`, else of the pod, else of the user.

    Without `context` the current context of the file counts. The server takes the part of the user
    agent before "/" as the default field manager.

    Raises:
        KubeconfigError: The kubeconfig or the pod's ServiceAccount cannot be used.
    """
    found = None if kubeconfig or context else service_account()
    transport = Transport(found or await kubeconfig_access(kubeconfig, context), user_agent)
    try:
        yield ApiClient(transport)
    finally:
        await transport.close()


async def _frames(
    response: ClientResponse, parse: Callable[[bytes], Frame]
) -> AsyncGenerator[Frame]:
    lines = Lines()
    with _translated("watch"):
        async for chunk in response.content.iter_chunked(CHUNK_BYTES):
            for line in lines.feed(chunk):
                yield parse(line)
            # Many events in a row must not block the event loop. After a chunk that is not full
            # the loop waits for the next one anyway.
            if len(chunk) == CHUNK_BYTES:
                await asyncio.sleep(0)


@contextlib.contextmanager
def _translated(what: str) -> Iterator[None]:
    """Turn errors of the transport into errors of this package."""
    try:
        yield
    except (ClientConnectorError, ConnectionTimeoutError) as error:
        raise UnavailableError(f"{what}: {said(error)}") from error
    except (ClientError, OSError) as error:
        raise lost(f"{what}: {said(error)}") from error


def _now() -> float:
    return asyncio.get_running_loop().time()
