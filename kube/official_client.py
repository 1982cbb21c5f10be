"""Kubeconfigs, read by the official client: its files, tokens, exec plugins and OIDC.

It is imported when somebody has a kubeconfig, and so never in a pod, where its models would take
more memory than all else that a client of the API needs.
"""

from __future__ import annotations

import asyncio
import os
from importlib import import_module
from pathlib import Path
from typing import Any

import yaml
from aiohttp import ClientError

from kube.apiserver_transport import Access
from kube.errors import KubeconfigError, UnavailableError

REFRESH_SECONDS = 60.0
"""How often token files, exec plugins and OIDC are asked again."""


async def kubeconfig_access(kubeconfig: Path | None) -> Access:
    """What the file says, else the user's own.

    Raises KubeconfigError, with the file's name, where it is of no use.
    """
    # By name, since the client's sources would take mypy a minute and have no types to offer.
    config: Any = import_module("kubernetes.aio.config")
    try:
        return await _access(config, kubeconfig)
    except (config.ConfigException, OSError, ValueError, TypeError, yaml.YAMLError) as error:
        which = kubeconfig or os.environ.get("KUBECONFIG") or "~/.kube/config"
        reason = _reason(str(which), error)
        raise KubeconfigError(f"kubeconfig {which} cannot be used: {reason}") from error


def _reason(which: str, error: Exception) -> object:
    """In place of what the loader says where it finds nothing, or not what it expects."""
    if not any(Path(file).expanduser().exists() for file in which.split(os.pathsep)):
        return "there is no such file"
    return "it is no kubeconfig" if isinstance(error, TypeError) else error


async def _access(config: Any, kubeconfig: Path | None) -> Access:
    client: Any = import_module("kubernetes.aio.client")
    found = client.Configuration()
    loader = await config.load_kube_config(
        config_file=str(kubeconfig) if kubeconfig else None,
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
    )
