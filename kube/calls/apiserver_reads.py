"""Reads of the API: what is asked, and what an answer means, whatever carries it.

`ApiClient` carries it by aiohttp; a command that runs for a moment carries it by kubectl, see room
`kubectl`, and pays for no more imports than this module has.
"""

from __future__ import annotations

import contextlib
from abc import ABC, abstractmethod
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass
from datetime import datetime

import msgspec

from kube.calls import read_requests
from kube.calls.errors import (
    ApiError,
    ForbiddenError,
    GoneError,
    NotFoundError,
    UnavailableError,
    error_of,
)
from kube.calls.http_dates import moment_of
from kube.calls.read_requests import Request
from kube.objects import JsonObject, parse_resource_version
from kube.resources import ObjectPath, Resource, Selection

READ_SECONDS = 30.0
PAGE_SIZE = 500


@dataclass(frozen=True, slots=True)
class Answer:
    """One HTTP answer with its whole body; names of headers are as `Retry-After`."""

    status: int
    headers: Mapping[str, str]
    body: bytes


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


class ApiReader(ABC):
    """The verbs that read, on raw JSON; every failure is an ApiError."""

    @property
    @abstractmethod
    def namespace(self) -> str:
        """What counts where a user names none, as for kubectl."""

    @abstractmethod
    async def _answer(self, request: Request) -> Answer:
        """The answer to one request. Raises ApiError where it is a refusal, or there is none."""

    async def get(self, path: ObjectPath, *, timeout_seconds: float = READ_SECONDS) -> JsonObject:
        return await self._call(read_requests.read(path.url_path, timeout_seconds))

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
        answer = await self._answer(read_requests.read("/version", READ_SECONDS))
        body = parsed(answer.body)
        try:
            return Server(body["gitVersion"], moment_of(answer.headers["Date"]))
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
            await self._answer(read_requests.read("/readyz", READ_SECONDS))
        return await self._lists(resource)

    async def _lists(self, resource: Resource) -> bool:
        try:
            await self.current_version(resource.select())
        except NotFoundError:
            return False
        return True

    async def _list(self, selection: Selection, page_size: int, timeout_seconds: float) -> Page:
        found = self.pages(selection, page_size=page_size, timeout_seconds=timeout_seconds)
        pages = [page async for page in found]
        items = tuple(item for page in pages for item in page.items)
        return Page(items, pages[-1].resource_version)

    async def _page(
        self, selection: Selection, limit: int, token: str, timeout_seconds: float
    ) -> Page:
        try:
            body = await self._call(
                read_requests.list_page(selection, limit, token, timeout_seconds)
            )
        except NotFoundError as error:
            raise _not_served(selection.resource, error) from error
        try:
            metadata = body["metadata"]
            version = parse_resource_version(metadata["resourceVersion"])
            return Page(tuple(body.get("items") or ()), version, metadata.get("continue") or "")
        except (KeyError, TypeError, ValueError) as error:
            raise UnavailableError(f"not a list: {error!r}") from error

    async def _call(self, request: Request) -> JsonObject:
        return parsed((await self._answer(request)).body)


def _not_served(resource: Resource, error: NotFoundError) -> NotFoundError:
    """A list of nothing is empty; only that of a kind that is not there is not found."""
    return NotFoundError(
        f"the API server serves no {resource.plural} of {resource.api_version}: is their"
        " definition installed?",
        status=error.status,
        reason=error.reason,
    )


def lost(message: str) -> UnavailableError:
    """That an answer did not come, or not whole: what was asked may have happened."""
    error = UnavailableError(message)
    error.may_have_happened = True
    return error


def refusal(answer: Answer) -> ApiError:
    """What an answer of status 400 or above says."""
    try:
        status = msgspec.json.decode(answer.body)
    except (ValueError, RecursionError):
        status = {"message": answer.body[:500].decode(errors="replace").strip()}
    if not isinstance(status, dict):
        status = {}
    headers = answer.headers
    return error_of(answer.status, status, headers.get("Retry-After", ""), headers.get("Date", ""))


def parsed(body: bytes) -> JsonObject:
    """The object in a body.

    Raises:
        UnavailableError: If it is none.
    """
    try:
        found = msgspec.json.decode(body)
    except (ValueError, RecursionError) as error:
        raise lost(f"the answer is not JSON: {error!r}") from error
    if not isinstance(found, dict):
        raise lost("the answer is not an object")
    return found
