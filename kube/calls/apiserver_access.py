"""Access to an API server: the pod's own ServiceAccount, or a kubeconfig.

This module reads the ServiceAccount. The official client reads kubeconfigs, with their files,
tokens, exec plugins and OIDC. It is imported only for a kubeconfig, and so never in a pod: its
models take more memory than the rest of an API client.
"""

from __future__ import annotations

import asyncio
import os
import ssl
from importlib import import_module
from pathlib import Path
from typing import Any

import yaml
from aiohttp import ClientError

from kube.calls.apiserver_transport import DEFAULT_NAMESPACE, Access
from kube.calls.disk_files import is_there
from kube.calls.errors import KubeconfigError, UnavailableError

FOLDER = Path("/var/run/secrets/kubernetes.io/serviceaccount")

REFRESH_SECONDS = 60.0
"""How often tokens are read, and exec plugins and OIDC are asked. The kubelet replaces a token
long before it expires."""


def service_account() -> Access | None:
    """Access by the pod's ServiceAccount; None outside of pods.

    Raises:
        KubeconfigError: Its CA or token cannot be read.
    """
    host, port = (os.environ.get(f"KUBERNETES_SERVICE_{name}") for name in ("HOST", "PORT"))
    if not host:
        return None
    name = f"[{host}]" if ":" in host else host
    try:
        tls = as_kubectl(ssl.create_default_context(cafile=str(FOLDER / "ca.crt")))
        token = _Token(FOLDER / "token")
    except (OSError, ValueError) as error:
        raise KubeconfigError(f"the pod's ServiceAccount cannot be used: {error}") from error
    return Access(host=f"https://{name}:{port or 443}", tls=tls, authorization=token.authorization)


def as_kubectl(tls: ssl.SSLContext) -> ssl.SSLContext:
    """The context, for all certificates that kubectl accepts.

    From Python 3.13 on a default context also demands RFC 5280 to the letter. Authorities of many
    clusters do not meet it, for example without an authority key identifier.
    """
    tls.verify_flags &= ~ssl.VERIFY_X509_STRICT
    return tls


class _Token:
    """The token of a file, read at most `REFRESH_SECONDS` ago."""

    def __init__(self, file: Path) -> None:
        self._file = file
        self._read()

    async def authorization(self) -> str:
        if asyncio.get_running_loop().time() >= self._due:
            try:
                self._read()
            except (OSError, ValueError) as error:
                # The file may be empty for a moment while it is replaced.
                raise UnavailableError(f"no credentials: {error!r}") from error
        return f"Bearer {self._token}"

    def _read(self) -> None:
        token = self._file.read_text().strip()
        if not token:
            raise ValueError(f"{self._file} is empty")
        self._token, self._due = token, asyncio.get_running_loop().time() + REFRESH_SECONDS


async def kubeconfig_access(kubeconfig: Path | None, context: str = "") -> Access:
    """Access by the file, or by the user's own kubeconfig if None.

    `context` "" is the current context.

    Raises:
        KubeconfigError: The kubeconfig cannot be used; names the file.
    """
    # By name: mypy would need a minute for the client's sources, which have no types.
    config: Any = import_module("kubernetes.aio.config")
    try:
        return await _access(config, kubeconfig, context)
    except (config.ConfigException, OSError, ValueError, TypeError, yaml.YAMLError) as error:
        which = kubeconfig or os.environ.get("KUBECONFIG") or "~/.kube/config"
        reason = _reason(str(which), error)
        raise KubeconfigError(f"kubeconfig {which} cannot be used: {reason}") from error


def _reason(which: str, error: Exception) -> object:
    """A clearer text than the loader's if there is no file, or the file is no kubeconfig."""
    if not any(is_there(Path(file).expanduser()) for file in which.split(os.pathsep)):
        return "there is no such file"
    return "it is no kubeconfig" if isinstance(error, TypeError) else error


async def _access(config: Any, kubeconfig: Path | None, context: str) -> Access:
    client: Any = import_module("kubernetes.aio.client")
    found = client.Configuration()
    loader = await config.load_kube_config(
        config_file=str(kubeconfig) if kubeconfig else None,
        context=context or None,
        client_configuration=found,
        persist_config=False,
    )
    loop = asyncio.get_running_loop()
    due = loop.time() + REFRESH_SECONDS

    async def authorization() -> str:
        nonlocal due
        try:
            if loop.time() >= due:
                # Set first: concurrent calls use the credentials that they have.
                due = loop.time() + REFRESH_SECONDS
                await loader.load_and_set(found)
            settings = await found.auth_settings()
        except (config.ConfigException, ClientError, OSError, ValueError) as error:
            raise UnavailableError(f"no credentials: {error!r}") from error
        return next((str(setting["value"]) for setting in settings.values()), "")

    return Access(
        host=found.host,
        tls=as_kubectl(client.rest.RESTClientObject(found).ssl_context),
        authorization=authorization,
        proxy=found.proxy,
        proxy_headers=found.proxy_headers or {},
        server_name=found.tls_server_name or None,
        namespace=loader.current_context["context"].get("namespace") or DEFAULT_NAMESPACE,
    )
