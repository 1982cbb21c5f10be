"""Access to an API server: the pod's own ServiceAccount, or a kubeconfig.

The ServiceAccount is read here. Kubeconfigs, with their files, tokens, exec plugins and OIDC, the
official client reads: it is imported when somebody has one, and so never in a pod, where its models
would take more memory than all else that a client of the API needs.
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
"""How often tokens are read anew, and exec plugins and OIDC asked; the kubelet replaces a token
long before it is void."""


def service_account() -> Access | None:
    """What the pod was given; None outside of pods.

    Raises KubeconfigError where it is of no use.
    """
    host, port = (os.environ.get(f"KUBERNETES_SERVICE_{name}") for name in ("HOST", "PORT"))
    if not host:
        return None
    name = f"[{host}]" if ":" in host else host
    try:
        tls = ssl.create_default_context(cafile=str(FOLDER / "ca.crt"))
        token = _Token(FOLDER / "token")
    except (OSError, ValueError) as error:
        raise KubeconfigError(f"the pod's ServiceAccount cannot be used: {error}") from error
    return Access(host=f"https://{name}:{port or 443}", tls=tls, authorization=token.authorization)


class _Token:
    """The token's file, as it was at most a minute ago."""

    def __init__(self, file: Path) -> None:
        self._file = file
        self._read()

    async def authorization(self) -> str:
        if asyncio.get_running_loop().time() >= self._due:
            try:
                self._read()
            except (OSError, ValueError) as error:
                # A file is empty for a moment while it is replaced: later it is there again.
                raise UnavailableError(f"no credentials: {error!r}") from error
        return f"Bearer {self._token}"

    def _read(self) -> None:
        token = self._file.read_text().strip()
        if not token:
            raise ValueError(f"{self._file} is empty")
        self._token, self._due = token, asyncio.get_running_loop().time() + REFRESH_SECONDS


async def kubeconfig_access(kubeconfig: Path | None, context: str = "") -> Access:
    """What the file says, else the user's own, of its current context or another.

    Raises KubeconfigError, with the file's name, where it is of no use.
    """
    # By name, since the client's sources would take mypy a minute and have no types to offer.
    config: Any = import_module("kubernetes.aio.config")
    try:
        return await _access(config, kubeconfig, context)
    except (config.ConfigException, OSError, ValueError, TypeError, yaml.YAMLError) as error:
        which = kubeconfig or os.environ.get("KUBECONFIG") or "~/.kube/config"
        reason = _reason(str(which), error)
        raise KubeconfigError(f"kubeconfig {which} cannot be used: {reason}") from error


def _reason(which: str, error: Exception) -> object:
    """In place of what the loader says where it finds nothing, or not what it expects."""
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
                # Set first: the calls that run beside this one keep the credentials they have.
                due = loop.time() + REFRESH_SECONDS
                await loader.load_and_set(found)
            settings = await found.auth_settings()
        except (config.ConfigException, ClientError, OSError, ValueError) as error:
            raise UnavailableError(f"no credentials: {error!r}") from error
        return next((str(setting["value"]) for setting in settings.values()), "")

    return Access(
        host=found.host,
        tls=client.rest.RESTClientObject(found).ssl_context,
        authorization=authorization,
        proxy=found.proxy,
        proxy_headers=found.proxy_headers or {},
        server_name=found.tls_server_name or None,
        namespace=loader.current_context["context"].get("namespace") or DEFAULT_NAMESPACE,
    )
