"""The ServiceAccount of the pod that this process runs in: its token, and whom it trusts.

Read here and not by the official client: importing that takes more memory than all else that a
client of the API needs.
"""

from __future__ import annotations

import asyncio
import os
import ssl
from pathlib import Path

from kube.apiserver_transport import Access
from kube.errors import KubeconfigError, UnavailableError

FOLDER = Path("/var/run/secrets/kubernetes.io/serviceaccount")

REFRESH_SECONDS = 60.0
"""How often the token is read; the kubelet replaces it long before it is void."""


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
