"""The API server: one call out, one answer or one error back."""

import asyncio
import contextlib
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Iterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import datetime
from email.utils import parsedate_to_datetime
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import msgspec
from aiohttp import (
    ClientConnectorError,
    ClientError,
    ClientResponse,
    ClientTimeout,
    ConnectionTimeoutError,
)

from kube.calls import requests
from kube.calls.apiserver_access import kubeconfig_access, service_account
from kube.calls.apiserver_transport import Transport
from kube.calls.errors import (
    ApiError,
    ForbiddenError,
    GoneError,
    NotFoundError,
    UnavailableError,
    error_of,
    said,
)
from kube.calls.frames import Frame, Lines, frames_of
from kube.calls.requests import NO_PRECONDITIONS, WRITE, Preconditions, Request, WriteOptions
from kube.objects import JsonObject, parse_resource_version
from kube.resources import ObjectPath, Resource, Selection

CONNECT_SECONDS = 10.0
READ_SECONDS = 30.0
PAGE_SIZE = 500
CHUNK_BYTES = 2**16


@dataclass(frozen=True, slots=True)
class Page:
    """A part of a list, or all of it; all pages show the state at one resourceVersion."""

    items: tuple[JsonObject, ...]
    resource_version: int
    continue_token: str = ""


@dataclass(frozen=True, slots=True)
class Server:
    """What the API server says of itself: `v1.36.3`, and its clock to the second."""

    git_version: str
    time: datetime


class ApiClient:
    """The verbs of the API on raw JSON; every failure is an ApiError."""

    def __init__(self, transport: Transport) -> None:
        self.transport = transport

    @property
    def namespace(self) -> str:
        """What counts where a user names none, as for kubectl."""
        return self.transport.namespace

    async def get(self, path: ObjectPath, *, timeout_seconds: float = READ_SECONDS) -> JsonObject:
        return await self._call(requests.read(path.url_path, timeout_seconds))

    async def list(
        self,
        selection: Selection,
        *,
        page_size: int = PAGE_SIZE,
        timeout_seconds: float = READ_SECONDS,
    ) -> Page:
        """Return everything selected; for many objects a Store or `pages` needs less memory."""
        for _ in range(2):
            with contextlib.suppress(GoneError):
                return await self._list(selection, page_size, timeout_seconds)
        return await self._list(selection, page_size, timeout_seconds)

    async def pages(
        self,
        selection: Selection,
        *,
        page_size: int = PAGE_SIZE,
        timeout_seconds: float = READ_SECONDS,
    ) -> AsyncIterator[Page]:
        """Yield the pages of one list; GoneError halfway means: start the list again."""
        token = ""
        while True:
            page = await self._page(selection, page_size, token, timeout_seconds)
            yield page
            if not (token := page.continue_token):
                return

    async def current_version(
        self, selection: Selection, *, timeout_seconds: float = READ_SECONDS
    ) -> int:
        """Return the resourceVersion of this moment, for `Store.at_least`."""
        return (await self._page(selection, 1, "", timeout_seconds)).resource_version

    async def server(self) -> Server:
        """Return its version, and what time it is there.

        Raises:
            ApiError: If it does not tell.
        """
        request = requests.read("/version", READ_SECONDS)
        with _translated(request.what):
            response = await self._open(request)
            async with response:
                body = _parsed(await response.read())
        try:
            return Server(body["gitVersion"], parsedate_to_datetime(response.headers["Date"]))
        except (KeyError, ValueError) as error:
            raise UnavailableError(f"not a version: {error!r}") from error

    async def serves(self, resource: Resource) -> bool:
        """Whether there is this kind, in this version, asked by a list of one object.

        A server that has just been started knows no custom resources yet. So none is believed to
        be missing before the server says that it is ready.

        Raises:
            ApiError: If that cannot be told yet, or the list is forbidden.
        """
        if await self._lists(resource):
            return True
        with contextlib.suppress(ForbiddenError, NotFoundError):
            # Whoever cannot ask has to believe the list.
            (await self._open(requests.read("/readyz", READ_SECONDS))).release()
        return await self._lists(resource)

    async def _lists(self, resource: Resource) -> bool:
        try:
            await self.current_version(resource.select())
        except NotFoundError:
            return False
        return True

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
        options: WriteOptions = WRITE,
    ) -> JsonObject:
        request = requests.delete(path, preconditions, grace_period_seconds, options)
        return await self._call(request)

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
        """Merge lists by their keys, for Kubernetes' own kinds: the entries of others stay.

        Unlike applying without an entry, `$patch: delete` takes nothing with it that the API
        server itself wrote and nobody owns, such as the rest of a new pod's status.
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
        """Apply on the server as `options.field_manager`; `force` takes fields from others."""
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
        """Open a watch; leaving the context ends its connection. `shape`: see `WatchSettings`."""
        request = requests.watch(selection, resource_version, seconds, idle_seconds)
        limits = ClientTimeout(sock_connect=CONNECT_SECONDS, sock_read=idle_seconds)
        response = await self._open(request, limits)
        async with contextlib.aclosing(_frames(response, frames_of(shape))) as frames:
            try:
                yield frames
            finally:
                response.close()

    async def _list(self, selection: Selection, page_size: int, timeout_seconds: float) -> Page:
        found = self.pages(selection, page_size=page_size, timeout_seconds=timeout_seconds)
        pages = [page async for page in found]
        items = tuple(item for page in pages for item in page.items)
        return Page(items, pages[-1].resource_version)

    async def _page(
        self, selection: Selection, limit: int, token: str, timeout_seconds: float
    ) -> Page:
        try:
            body = await self._call(requests.list_page(selection, limit, token, timeout_seconds))
        except NotFoundError as error:
            raise _not_served(selection.resource, error) from error
        try:
            metadata = body["metadata"]
            version = parse_resource_version(metadata["resourceVersion"])
            return Page(tuple(body.get("items") or ()), version, metadata.get("continue") or "")
        except (KeyError, TypeError, ValueError) as error:
            raise UnavailableError(f"not a list: {error!r}") from error

    async def _call(self, request: Request) -> JsonObject:
        with _translated(request.what):
            response = await self._open(request)
            async with response:
                return _parsed(await response.read())

    async def _open(self, request: Request, limits: ClientTimeout | None = None) -> ClientResponse:
        """The answer, of which the head is there; its body is to come within the limits, too."""
        limits = limits or ClientTimeout(request.timeout_seconds, sock_connect=CONNECT_SECONDS)
        url = request.url_path
        if request.query:
            url = f"{url}?{urlencode(request.query)}"
        headers = {"Content-Type": request.content_type}
        with _translated(request.what):
            response = await self.transport.send(request.method, url, headers, request.body, limits)
            if response.status < 400:
                return response
            async with response:
                raise _refusal(response, await response.read())


@asynccontextmanager
async def connect(
    kubeconfig: Path | None = None, *, user_agent: str = "moorage", context: str = ""
) -> AsyncIterator[ApiClient]:
    """Yield a client of the file's cluster, else of the pod's, else of the user's.

    Of a file it is the current context, or the one that is named.

    The server takes the part of the user agent before "/" as the default field manager.
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
            # A flood of events must not keep the rest of the process waiting. A chunk that is not
            # full was all there was, and the next one is waited for anyway.
            if len(chunk) == CHUNK_BYTES:
                await asyncio.sleep(0)


def _not_served(resource: Resource, error: NotFoundError) -> NotFoundError:
    """A list of nothing is empty; only that of a kind that is not there is not found."""
    return NotFoundError(
        f"the API server serves no {resource.plural} of {resource.api_version}: is their"
        " definition installed?",
        status=error.status,
        reason=error.reason,
    )


@contextlib.contextmanager
def _translated(what: str) -> Iterator[None]:
    """Turn what the transport raises into errors of this package."""
    try:
        yield
    except (ClientConnectorError, ConnectionTimeoutError) as error:
        raise UnavailableError(f"{what}: {said(error)}") from error
    except (ClientError, OSError) as error:
        raise _lost(f"{what}: {said(error)}") from error


def _lost(message: str) -> UnavailableError:
    error = UnavailableError(message)
    error.may_have_happened = True
    return error


def _refusal(response: ClientResponse, body: bytes) -> ApiError:
    try:
        status = msgspec.json.decode(body)
    except (ValueError, RecursionError):
        status = {"message": body[:500].decode(errors="replace").strip()}
    if not isinstance(status, dict):
        status = {}
    headers = response.headers
    return error_of(
        response.status, status, headers.get("Retry-After", ""), headers.get("Date", "")
    )


def _parsed(body: bytes) -> JsonObject:
    try:
        parsed = msgspec.json.decode(body)
    except (ValueError, RecursionError) as error:
        raise _lost(f"the answer is not JSON: {error!r}") from error
    if not isinstance(parsed, dict):
        raise _lost("the answer is not an object")
    return parsed
