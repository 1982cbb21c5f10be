"""The dashboard's client of the elected plugin.

    Lease ──holder──► pod ──its IP──► the port for the dashboard ──/pods/…──► PodAnswer

The client uses mutual TLS, with the certificate of the Secret that the plugin keeps. The dashboard
reviews before what a viewer may see: the plugin gets no user name and no token.
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

from kube.calls.api import ApiClient, ApiError, NotFoundError
from kube.kinds import PODS
from kube.live_tls import CertificateError, client_context
from kube.resources import ObjectPath
from kube.shapes.leases import parse_lease
from kube.shapes.pods import NO_STATUS, Pod
from kube.shapes.reading import UnreadableError, read_as
from scheduler_plugin.dashboard.leader.answers import PodAnswer
from scheduler_plugin.dashboard.leader.apiserver_credentials import read_client_credential
from scheduler_plugin.dashboard.leader.credentials import HOST

T = TypeVar("T")

WAIT_SECONDS = 1.5
"""How long a viewer waits for the leader at most."""

REMEMBERED_SECONDS = 5.0
"""How long the leader's address, and whether it answers, are cached."""

CREDENTIAL_SECONDS = 300.0
"""How long the certificate is cached, unless the leader refuses it."""

AT_ONCE = 4
MOST_BYTES = 100_000

STATIC_POD = "kube-scheduler-"
"""The prefix of the name of kube-scheduler's static pod, before its node's name."""


class CannotAskError(Exception):
    """Raised with a sentence that begins with `Places in line are not known: `."""

    def __init__(self, why: str) -> None:
        super().__init__(f"Places in line are not known: {why}")


@dataclass(frozen=True, slots=True, kw_only=True)
class LeaderSettings:
    """How the elected plugin is found.

    Attributes:
        lease: kube-scheduler's Lease.
        port: The port at which the plugin answers the dashboard; 0 if it is not to be asked.
        secret: The Secret with the dashboard's certificate.
    """

    lease: ObjectPath
    port: int
    secret: ObjectPath


class _Remembered(Generic[T]):
    """A value that is read at most every `seconds`."""

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
        """Close all connections."""
        if self._session is not None:
            await self._session.close()

    async def why_not(self) -> str:
        """Why the leader cannot be asked, as a sentence; "" if it can."""
        return await self._why_not.get()

    async def _look(self) -> str:
        try:
            await self._ask("healthz")
        except CannotAskError as error:
            return str(error)
        return ""

    async def pod(self, namespace: str, name: str) -> PodAnswer:
        """What the leader knows about a pod.

        Raises:
            CannotAskError: If the leader cannot be asked.
        """
        body = await self._ask("pods", namespace, name)
        try:
            return msgspec.json.decode(body, type=PodAnswer)
        except (msgspec.DecodeError, UnicodeDecodeError):
            raise CannotAskError("the leader's answer has another version.") from None

    async def _ask(self, *path: str) -> bytes:
        if not self._settings.port:
            raise CannotAskError("set --plugin-port of the dashboard to the plugin's port for it.")
        try:
            async with asyncio.timeout(WAIT_SECONDS), self._places:
                return await self._get((await self._url.get()).joinpath(*path))
        except TimeoutError:
            self._forget()
            raise CannotAskError(f"the leader did not answer within {WAIT_SECONDS:g} s.") from None
        except (ApiError, UnreadableError) as error:
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
        """Forget address and certificate: another plugin may lead, with new certificates."""
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
        # Each start of a kube-scheduler has another suffix behind its host's name.
        host = holder.rpartition("_")[0] or holder
        if not host:
            raise CannotAskError(f"no scheduler holds Lease {path.namespace}/{path.name}.")
        address = await self._address(host, path.namespace)
        return URL.build(scheme="https", host=address, port=self._settings.port)

    async def _address(self, host: str, namespace: str) -> str:
        """The IP of the leader's pod: it has the host's name, or a static pod's with the node's."""
        for name in (host, f"{STATIC_POD}{host}"):
            try:
                pod = await self._client.get(PODS.at(name, namespace))
            except NotFoundError:
                continue
            if address := (read_as(Pod, pod).status or NO_STATUS).pod_ip:
                return address
            raise CannotAskError(f"pod {namespace}/{name}, which leads, has no IP address yet.")
        raise CannotAskError(f"the leader's pod {namespace}/{host} does not exist.")
