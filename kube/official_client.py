"""The official Kubernetes client: its configuration, its credentials, its transport.

Importing anything of `kubernetes` imports its synchronous half too, with requests, urllib3 and
oauthlib: a third of the memory of a small process, for code that nobody here calls. While the
asynchronous half is imported, those packages get the standard library's LazyLoader: they are
there, and load when somebody touches them. If a release moves things about, more is loaded than
needed, and nothing else changes.
"""

import asyncio
import contextlib
import os
import socket
import sys
from collections.abc import Iterator, Sequence
from importlib import import_module
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec, PathFinder
from importlib.util import LazyLoader
from pathlib import Path
from types import ModuleType
from typing import Any
from urllib.parse import urlsplit
from urllib.request import getproxies, proxy_bypass

import msgspec
import yaml
from aiohttp import (
    AddrInfoType,
    ClientError,
    ClientResponse,
    ClientSession,
    ClientTimeout,
    TCPConnector,
)

from kube.errors import KubeconfigError, UnavailableError

IDLE_SECONDS = 60.0
"""How long an idle connection is kept: API servers keep them for 90 s, and a handshake takes
longer than most calls."""

DEAD_SECONDS = 15
"""How long a peer may leave the kernel without an answer: to what was sent, or to three questions
for a sign of life, of which the first comes after as long a silence."""

_TCP = socket.IPPROTO_TCP
_SIGNS_OF_LIFE = (
    (socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1),
    (_TCP, socket.TCP_KEEPIDLE, DEAD_SECONDS),
    (_TCP, socket.TCP_KEEPINTVL, DEAD_SECONDS // 3),
    (_TCP, socket.TCP_KEEPCNT, 3),
    (_TCP, socket.TCP_USER_TIMEOUT, DEAD_SECONDS * 1000),
)

_DEFERRED = frozenset(
    f"kubernetes.{name}"
    for half in ("", "aio.")
    for name in (
        *(f"{half}{part}" for part in ("config", "dynamic", "leaderelection", "stream", "watch")),
        *(() if half else ("client", "informer", "utils")),
    )
)


class _Deferral(MetaPathFinder):
    """Finds the modules that load when they are first used, not when they are imported."""

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        spec = PathFinder.find_spec(fullname, path, target) if fullname in _DEFERRED else None
        if spec and spec.loader:
            spec.loader = LazyLoader(spec.loader)
        return spec


@contextlib.contextmanager
def _deferring() -> Iterator[None]:
    finder = _Deferral()
    sys.meta_path.insert(0, finder)
    try:
        yield
    finally:
        sys.meta_path.remove(finder)


def _api_client(*args: Any, **kwargs: Any) -> Any:
    return _client.ApiClient(*args, **kwargs)


@contextlib.contextmanager
def _deferring_api_client() -> Iterator[None]:
    """Let what is imported meanwhile find a function that makes an ApiClient, and not its class.

    The class brings pydantic, nine megabytes with all that hangs on it.
    """
    _client.ApiClient = _api_client
    try:
        yield
    finally:
        del _client.ApiClient


with _deferring():
    # By name, since the client's sources would take mypy a minute and have no types to offer.
    _client: Any = import_module("kubernetes.aio.client")
    _rest: Any = import_module("kubernetes.aio.client.rest")
    with _deferring_api_client():
        _config: Any = import_module("kubernetes.aio.config")

REFRESH_SECONDS = 60.0


async def load_configuration(kubeconfig: Path | None) -> Any:
    """Return the client's Configuration: of the file, else of the pod, else of the user.

    In a pod the token file is read again every minute (by the official client); with a
    kubeconfig, token files, exec plugins and OIDC are asked again every minute.

    Raises KubeconfigError, with the file's name, where that cannot be had.
    """
    try:
        return await _load(kubeconfig)
    except (_config.ConfigException, OSError, ValueError, TypeError, yaml.YAMLError) as error:
        which = kubeconfig or os.environ.get("KUBECONFIG") or "~/.kube/config"
        # What the loader stumbles over where it expects a mapping says nothing to a user.
        reason = "it is no kubeconfig" if isinstance(error, TypeError) else error
        raise KubeconfigError(f"kubeconfig {which} cannot be used: {reason}") from error


async def _load(kubeconfig: Path | None) -> Any:
    configuration = _client.Configuration()
    if kubeconfig is None and "KUBERNETES_SERVICE_HOST" in os.environ:
        _config.load_incluster_config(configuration)
        return configuration
    loader = await _config.load_kube_config(
        config_file=str(kubeconfig) if kubeconfig else None,
        client_configuration=configuration,
        persist_config=False,
    )
    configuration.refresh_api_key_hook = _refresh_by(loader)
    return configuration


def _refresh_by(loader: Any) -> Any:
    loop = asyncio.get_running_loop()
    due = loop.time() + REFRESH_SECONDS

    async def refresh(configuration: Any) -> None:
        nonlocal due
        if loop.time() >= due:
            # Set first: the calls that run beside this one keep the credentials they have.
            due = loop.time() + REFRESH_SECONDS
            await loader.load_and_set(configuration)

    return refresh


def _new_socket(address: AddrInfoType) -> socket.socket:
    """A socket whose peer is asked for a sign of life while nothing else is said.

    A host that vanished answers nothing, not even with a reset: a watch would wait for it until it
    is taken for half-open because of its silence.
    """
    family, kind, protocol, _, _ = address
    made = socket.socket(family, kind, protocol)
    made.setblocking(False)
    for level, option, value in _SIGNS_OF_LIFE:
        made.setsockopt(level, option, value)
    return made


def _session(configuration: Any) -> ClientSession:
    """A pool of connections as the official client makes it, with its TLS.

    Its own `request` would add half of aiohttp's cost to every call. Nothing is read from the
    environment any more: left to itself aiohttp looks for a proxy before each request, and in a
    thread for a password in ~/.netrc, which is not for API servers.
    """
    tls = _rest.RESTClientObject(configuration).ssl_context
    connector = TCPConnector(
        limit=configuration.connection_pool_maxsize,
        ssl=tls,
        keepalive_timeout=IDLE_SECONDS,
        socket_factory=_new_socket,
    )
    # An event of a watch may be larger than aiohttp's own buffer.
    return ClientSession(connector=connector, trust_env=False, read_bufsize=2**21)


def _environment_proxy(host: str) -> str | None:
    url = urlsplit(host)
    return None if proxy_bypass(url.hostname or "") else getproxies().get(url.scheme)


class Transport:
    """The official client's configuration and credentials, on every request of one pool."""

    def __init__(self, configuration: Any, user_agent: str) -> None:
        self._configuration = configuration
        self._session = _session(configuration)
        self._user_agent = user_agent
        self._options = {
            "proxy": configuration.proxy or _environment_proxy(configuration.host),
            "proxy_headers": configuration.proxy_headers,
            "server_hostname": configuration.tls_server_name or None,
        }

    async def send(
        self, method: str, url: str, headers: dict[str, str], body: Any, limits: ClientTimeout
    ) -> ClientResponse:
        credentials = await self._credentials()
        return await self._session.request(
            method,
            self._configuration.host + url,
            headers={
                "Accept": "application/json",
                "User-Agent": self._user_agent,
                **credentials,
                **headers,
            },
            data=None if body is None else msgspec.json.encode(body),
            timeout=limits,
            **self._options,
        )

    async def _credentials(self) -> dict[str, str]:
        try:
            settings = await self._configuration.auth_settings()
        except (_config.ConfigException, ClientError, OSError, ValueError) as error:
            # A token file is empty for a moment while it is replaced: later it is there again.
            raise UnavailableError(f"no credentials: {error!r}") from error
        return {setting["key"]: setting["value"] for setting in settings.values()}

    async def close(self) -> None:
        await self._session.close()
