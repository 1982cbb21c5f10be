"""The leader's page, asked by a replica that stands by.

    Lease ──holder──► pod ──its IP──► the same port ──/dashboard/api/pods/…──► place in line

Places in line are in the leader's memory only. They are asked with the viewer's own token, so that
the leader reviews what the viewer may see: a replica has no right of its own there. That takes a
port which other pods reach (`dashboard.enabled`); it is plain HTTP, as behind a proxy. Where the
pages listen on loopback no pod reaches another, and what is told is how a person does.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Mapping

import msgspec
from aiohttp import ClientError, ClientSession
from yarl import URL

from kube.api import LEASES, PODS, ApiClient, ApiError, JsonObject, NotFoundError, is_loopback
from scheduler_plugin.extender.kube_scheduler_lease import LeaseSettings
from scheduler_plugin.extender.listening import Listening

WAIT_SECONDS = 1.5
"""How long a viewer waits for the leader at most."""

REMEMBERED_SECONDS = 5.0
"""How long it is remembered where the leader is, and whether it answers."""

AT_ONCE = 4
MOST_BYTES = 1_000_000


class CannotAskError(Exception):
    """Raised with a sentence that begins with `The leader could not be asked: `."""

    def __init__(self, why: str) -> None:
        super().__init__(f"The leader could not be asked: {why}")


class LeaderPages:
    """Asks the replica whose kube-scheduler holds the Lease."""

    def __init__(
        self,
        client: ApiClient,
        lease: LeaseSettings,
        pages: Listening,
        monotonic: Callable[[], float] = time.monotonic,  # noqa: TID251  The shell reads clocks.
    ) -> None:
        """`pages` is where this replica's pages listen: the others' have the same flags."""
        self._client, self._lease, self._pages = client, lease, pages
        self._monotonic = monotonic
        self._lock = asyncio.Lock()
        self._places = asyncio.Semaphore(AT_ONCE)
        self._said, self._said_until = "", float("-inf")
        self._url, self._url_until = URL(), float("-inf")

    async def why_not(self) -> str:
        """Why the leader cannot be asked, as a sentence; "" where it can."""
        async with self._lock:
            if self._monotonic() >= self._said_until:
                try:
                    await self._ask(("healthz",), {})
                    self._said = ""
                except CannotAskError as error:
                    self._said = str(error)
                self._said_until = self._monotonic() + REMEMBERED_SECONDS
        return self._said

    async def pod(self, token: str, namespace: str, name: str) -> JsonObject:
        """What the leader tells the owner of the token of a pod; see `http_views.Views.pod`.

        Raises:
            CannotAskError: It does not tell.
        """
        path = ("dashboard", "api", "pods", namespace, name)
        body = await self._ask(path, {"Authorization": f"Bearer {token}"})
        try:
            found = msgspec.json.decode(body)
        except msgspec.DecodeError:
            found = None
        if not isinstance(found, dict) or not found.keys() >= {"why", "place"}:
            raise CannotAskError("its answer is of another version.")
        return found

    async def _ask(self, path: tuple[str, ...], headers: Mapping[str, str]) -> bytes:
        try:
            async with asyncio.timeout(WAIT_SECONDS), self._places:
                return await self._get(await self._address(), path, headers)
        except TimeoutError:
            self._forget()
            raise CannotAskError(f"it did not answer within {WAIT_SECONDS:g} s.") from None
        except ApiError as error:
            raise CannotAskError(f"the API server does not say where it is: {error}") from error
        except (ClientError, OSError) as error:
            self._forget()
            raise CannotAskError(f"{error}.") from error

    async def _get(self, url: URL, path: tuple[str, ...], headers: Mapping[str, str]) -> bytes:
        # It answers what it knows itself: two replicas never wait for each other.
        wanted = url.joinpath(*path).with_query(here="true")
        async with (
            ClientSession() as session,
            session.get(wanted, headers=headers, allow_redirects=False) as answer,
        ):
            body = await answer.content.read(MOST_BYTES)
            while not answer.content.at_eof() and len(body) < MOST_BYTES:
                body += await answer.content.read(MOST_BYTES)
            if answer.status != 200:
                said = body[:300].decode(errors="replace")
                raise CannotAskError(f"it answered with status {answer.status}: {said}")
            return body

    def _forget(self) -> None:
        self._url_until = float("-inf")

    async def _address(self) -> URL:
        if self._monotonic() >= self._url_until:
            self._url = await self._find()
            self._url_until = self._monotonic() + REMEMBERED_SECONDS
        return self._url

    async def _find(self) -> URL:
        lease = await self._client.get(LEASES.at(self._lease.name, self._lease.namespace))
        holder = (lease.get("spec") or {}).get("holderIdentity") or ""
        # Each start of a kube-scheduler has another end behind its host's name.
        host = holder.rpartition("_")[0] or holder
        if not host:
            raise CannotAskError(f"no replica holds Lease {self._lease}.")
        if host == self._lease.identity:
            raise CannotAskError("it is this replica, which is about to begin.")
        pod = await self._pod(host)
        address = (pod.get("status") or {}).get("podIP") or ""
        if not address:
            raise CannotAskError(f"pod {self._lease.namespace}/{host} has no IP address yet.")
        return URL.build(scheme="http", host=address, port=self._pages.port)

    async def _pod(self, name: str) -> JsonObject:
        namespace, port = self._lease.namespace, self._pages.port
        closed = is_loopback(self._pages.host)
        try:
            found = await self._client.get(PODS.at(name, namespace))
        except NotFoundError:
            where = f' Forward port {port} of loopback on host "{name}".' if closed else ""
            raise CannotAskError(f"there is no pod {namespace}/{name}.{where}") from None
        if closed:
            command = f"kubectl -n {namespace} port-forward pod/{name} {port}"
            raise CannotAskError(f"pages listen on loopback only. Look at it with: {command}")
        return found
