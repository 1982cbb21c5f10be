"""The elected plugin, asked by the dashboard.

    Lease ──holder──► pod ──its IP──► the port for the dashboard ──/pods/…──► PodAnswer

It is asked over mutual TLS, with the certificate of the Secret that the plugin keeps. What a viewer
may see was reviewed before: the plugin hears of no viewer and of no token.
"""

from __future__ import annotations

import asyncio
import ssl
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Generic, TypeVar

import msgspec
from aiohttp import ClientError, ClientSession
from yarl import URL

from kube.api import (
    PODS,
    ApiClient,
    ApiError,
    CertificateError,
    NotFoundError,
    ObjectPath,
    client_context,
)
from kube.shapes.leases import parse_lease
from kube.shapes.pods import NO_STATUS, Pod
from kube.shapes.reading import read_as
from scheduler_plugin.dashboard.leader.answers import PodAnswer
from scheduler_plugin.dashboard.leader.apiserver_credentials import read_client_credential
from scheduler_plugin.dashboard.leader.credentials import HOST

T = TypeVar("T")

WAIT_SECONDS = 1.5
"""How long a viewer waits for the leader at most."""

REMEMBERED_SECONDS = 5.0
"""How long it is remembered where the leader is, and whether it answers."""

CREDENTIAL_SECONDS = 300.0
"""How long the certificate is remembered, unless the leader does not take it."""

AT_ONCE = 4
MOST_BYTES = 100_000

STATIC_POD = "kube-scheduler-"
"""What the name of kube-scheduler's static pod begins with, before its node's name."""


class CannotAskError(Exception):
    """Raised with a sentence that begins with `Places in line are not known: `."""

    def __init__(self, why: str) -> None:
        super().__init__(f"Places in line are not known: {why}")


@dataclass(frozen=True, slots=True, kw_only=True)
class LeaderSettings:
    """Where the elected plugin is found.

    Attributes:
        lease: kube-scheduler's.
        port: On which the plugin answers the dashboard; 0 where it is not asked.
        secret: With the certificate to show.
    """

    lease: ObjectPath
    port: int
    secret: ObjectPath


class _Remembered(Generic[T]):
    """What was read, for a time."""

    def __init__(
        self, read: Callable[[], Awaitable[T]], seconds: float, monotonic: Callable[[], float]
    ) -> None:
        self._read, self._seconds, self._monotonic = read, seconds, monotonic
        self._lock = asyncio.Lock()
        self._found: tuple[T, float] | None = None

    async def get(self) -> T:
        async with self._lock:
            if self._found is None or self._monotonic() >= self._found[1]:
                found = await self._read()
                self._found = found, self._monotonic() + self._seconds
            return self._found[0]

    def forget(self) -> None:
        self._found = None


class Leader:
    """Asks the plugin whose kube-scheduler holds the Lease."""

    def __init__(
        self,
        client: ApiClient,
        settings: LeaderSettings,
        monotonic: Callable[[], float] = time.monotonic,  # noqa: TID251  The shell reads clocks.
    ) -> None:
        self._client, self._settings = client, settings
        self._places = asyncio.Semaphore(AT_ONCE)
        self._session: ClientSession | None = None
        self._why_not = _Remembered(self._look, REMEMBERED_SECONDS, monotonic)
        self._url = _Remembered(self._find, REMEMBERED_SECONDS, monotonic)
        self._tls = _Remembered(self._context, CREDENTIAL_SECONDS, monotonic)

    async def aclose(self) -> None:
        """End all connections."""
        if self._session is not None:
            await self._session.close()

    async def why_not(self) -> str:
        """Why the leader cannot be asked, as a sentence; "" where it can."""
        return await self._why_not.get()

    async def _look(self) -> str:
        try:
            await self._ask("healthz")
        except CannotAskError as error:
            return str(error)
        return ""

    async def pod(self, namespace: str, name: str) -> PodAnswer:
        """What the leader knows of a pod.

        Raises:
            CannotAskError: It does not tell.
        """
        body = await self._ask("pods", namespace, name)
        try:
            return msgspec.json.decode(body, type=PodAnswer)
        except (msgspec.DecodeError, UnicodeDecodeError):
            raise CannotAskError("the leader's answer is of another version.") from None

    async def _ask(self, *path: str) -> bytes:
        if not self._settings.port:
            raise CannotAskError("this dashboard is not told the plugin's port for it.")
        try:
            async with asyncio.timeout(WAIT_SECONDS), self._places:
                return await self._get((await self._url.get()).joinpath(*path))
        except TimeoutError:
            self._forget()
            raise CannotAskError(f"the leader did not answer within {WAIT_SECONDS:g} s.") from None
        except ApiError as error:
            said = f"the API server does not say how the leader is reached: {error}"
            raise CannotAskError(said) from error
        except (CertificateError, ClientError, OSError) as error:
            self._forget()
            raise CannotAskError(f"the leader could not be reached: {error}.") from error

    async def _get(self, url: URL) -> bytes:
        tls = await self._tls.get()
        # Connections are kept: a handshake is work for the process that binds.
        session = self._session = self._session or ClientSession()
        async with session.get(url, ssl=tls, server_hostname=HOST, allow_redirects=False) as answer:
            body = await answer.content.read(MOST_BYTES)
            while not answer.content.at_eof() and len(body) < MOST_BYTES:
                body += await answer.content.read(MOST_BYTES)
            if answer.status != 200:
                said = body[:300].decode(errors="replace")
                raise CannotAskError(f"the leader answered with status {answer.status}: {said}")
            return body

    def _forget(self) -> None:
        """Another one may lead, with certificates that were made anew."""
        self._url.forget()
        self._tls.forget()

    async def _context(self) -> ssl.SSLContext:
        credential = await read_client_credential(self._client, self._settings.secret)
        if credential is None:
            secret = self._settings.secret
            raise CannotAskError(f"Secret {secret.namespace}/{secret.name} has no certificate yet.")
        return client_context(credential)

    async def _find(self) -> URL:
        path = self._settings.lease
        lease = await self._client.get(path)
        holder = parse_lease(lease).holder
        # Each start of a kube-scheduler has another end behind its host's name.
        host = holder.rpartition("_")[0] or holder
        if not host:
            raise CannotAskError(f"no scheduler holds Lease {path.namespace}/{path.name}.")
        address = await self._address(host, path.namespace)
        return URL.build(scheme="https", host=address, port=self._settings.port)

    async def _address(self, host: str, namespace: str) -> str:
        """A pod of a Deployment has its host's name; a static pod's ends with its node's."""
        for name in (host, f"{STATIC_POD}{host}"):
            try:
                pod = await self._client.get(PODS.at(name, namespace))
            except NotFoundError:
                continue
            if address := (read_as(Pod, pod).status or NO_STATUS).pod_ip:
                return address
            raise CannotAskError(f"pod {namespace}/{name} has no IP address yet.")
        raise CannotAskError(f"there is no pod {namespace}/{host}, which leads.")
