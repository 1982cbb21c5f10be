"""Reads of the API, independent of the transport: requests, and what their responses mean.

`ApiClient` sends them by aiohttp. A short command sends them through kubectl, see room `kubectl`,
and so needs no imports beyond those of this module.
"""

from __future__ import annotations

import contextlib
from abc import ABC, abstractmethod
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass, replace
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
    """One HTTP response with its whole body; header names are written as `Retry-After`."""

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
    """Version of the API server, such as `v1.36.3`, and its clock to the second.

    emulated: the other minor version whose features it has (`--emulated-version`), such as `1.35`;
        "" for none.
    """

    git_version: str
    time: datetime
    emulated: str = ""

    @property
    def release(self) -> str:
        """A text that changes with the version, and with the version that it emulates."""
        return (
            f"{self.git_version} emulating {self.emulated}" if self.emulated else self.git_version
        )


class ApiReader(ABC):
    """The verbs that read, on raw JSON; every failure is an ApiError."""

    @property
    @abstractmethod
    def namespace(self) -> str:
        """The namespace where the user names none, as for kubectl."""

    @abstractmethod
    async def _answer(self, request: Request) -> Answer:
        """The response to one request. Raises ApiError if it is a refusal, or does not come."""

    async def get(self, path: ObjectPath, *, timeout_seconds: float = READ_SECONDS) -> JsonObject:
        return await self._call(read_requests.read(path.url_path, timeout_seconds))

    async def list(
        self,
        selection: Selection,
        *,
        page_size: int = PAGE_SIZE,
        timeout_seconds: float = READ_SECONDS,
    ) -> Page:
        """Return all selected objects; for many objects a Store or `pages` needs less memory."""
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
        """Return the version and the clock of the API server.

        Raises:
            ApiError: The version cannot be read.
        """
        answer = await self._answer(read_requests.read("/version", READ_SECONDS))
        body = parsed(answer.body)
        try:
            return Server(body["gitVersion"], moment_of(answer.headers["Date"]), _emulated(body))
        except (AttributeError, KeyError, ValueError) as error:
            raise UnavailableError(f"not a version: {error!r}") from error

    async def serves(self, resource: Resource) -> bool:
        """Whether the API server serves this kind in this version, found by a list of one object.

        A server that has just started serves no custom resources yet. So a kind counts as missing
        only after the server has said that it is ready.

        Raises:
            ApiError: The server does not answer yet, or the list is forbidden.
        """
        if await self._lists(resource):
            return True
        with contextlib.suppress(ForbiddenError, NotFoundError):
            # Without the right to read `/readyz`, the list alone decides.
            await self._answer(read_requests.read("/readyz", READ_SECONDS))
        return await self._lists(resource)

    async def in_served_version(self, resource: Resource) -> Resource | None:
        """A resource in the first version of its API group that serves it; None if none does.

        The versions of a group may serve different resources, so each is asked.

        Raises:
            ApiError: The server does not answer yet.
        """
        group = await self._read_if_served(f"/apis/{resource.group}")
        for version in (str(each.get("version")) for each in group.get("versions") or ()):
            found = replace(resource, version=version)
            listed = await self._read_if_served(f"/apis/{found.api_version}")
            if any(each.get("name") == found.plural for each in listed.get("resources") or ()):
                return found
        return None

    async def _read_if_served(self, url_path: str) -> JsonObject:
        try:
            return await self._call(read_requests.read(url_path, READ_SECONDS))
        except NotFoundError:
            return {}

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


def _emulated(version: JsonObject) -> str:
    minor = f"{version.get('emulationMajor')}.{version.get('emulationMinor')}"
    is_other = version.get("emulationMinor") and not version["gitVersion"].startswith(f"v{minor}.")
    return minor if is_other else ""


def _not_served(resource: Resource, error: NotFoundError) -> NotFoundError:
    """The error of a list that is not found: its kind is not served."""
    return NotFoundError(
        f"the API server serves no {resource.plural} of {resource.api_version}: install their"
        " definition",
        status=error.status,
        reason=error.reason,
    )


def lost(message: str) -> UnavailableError:
    """The error of a response that did not arrive completely: a write may have happened."""
    error = UnavailableError(message)
    error.may_have_happened = True
    return error


def refusal(answer: Answer) -> ApiError:
    """The error of a response with status 400 or above."""
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
        UnavailableError: The body is not a JSON object.
    """
    try:
        found = msgspec.json.decode(body)
    except (ValueError, RecursionError) as error:
        raise lost(f"the answer is not JSON: {error!r}") from error
    if not isinstance(found, dict):
        raise lost("the answer is not an object")
    return found
