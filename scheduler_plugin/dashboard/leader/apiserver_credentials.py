"""The Secret of the plugin and the dashboard: the elected plugin writes it, and both read it.

The installation creates the Secret without data. So the plugin needs no right to create Secrets,
and may write this one only.
"""

from __future__ import annotations

import logging
from datetime import datetime
from typing import NoReturn

from kube.calls.api import ApiClient, Preconditions, WriteOptions
from kube.live_tls import CertificateError, LiveTls, TlsCredential
from kube.objects import JsonObject
from kube.reconciling.api import After, Reconciler, Result
from kube.resources import ObjectPath
from kube.shapes.metadata import named_metadata
from kube.wall_clock import wall_clock
from scheduler_plugin.dashboard.leader.credentials import (
    certificates_in,
    is_due,
    new_certificates,
    secret_data,
)
from scheduler_plugin.extender.mutual_certificates import MutualCertificates
from scheduler_plugin.objects.bindings import Fence

logger = logging.getLogger(__name__)

CALL_SECONDS = 5.0
WRITE = WriteOptions(timeout_seconds=CALL_SECONDS)

FIRST_SECONDS = 2.0
"""How soon a plugin without a certificate reads the Secret again."""

LOOK_SECONDS = 60.0
"""How soon a plugin reads the certificates that another plugin made."""


class CredentialKeeper:
    """Presents the plugin's certificate; the elected plugin renews it in time."""

    def __init__(self, client: ApiClient, secret: ObjectPath, live: LiveTls, fence: Fence) -> None:
        self._client, self._secret, self._live, self._fence = client, secret, live, fence
        self._shown: MutualCertificates | None = None
        self._queue: Reconciler[str] = Reconciler("dashboard-certificates", self._reconcile)

    async def run(self) -> NoReturn:
        """Keep the certificates until cancelled; failures are logged and retried forever."""
        self._queue.add(self._secret.name)
        await self._queue.run()

    async def _reconcile(self, _name: str) -> Result:
        secret = await self._client.get(self._secret, timeout_seconds=CALL_SECONDS)
        found, now = certificates_in(secret), wall_clock()
        is_shown = found is not None and self._show(found)
        if not is_shown or found is None or is_due(found, now):
            await self._renew(secret, now)
        return After(FIRST_SECONDS if self._shown is None else LOOK_SECONDS)

    async def _renew(self, secret: JsonObject, now: datetime) -> None:
        """Make new certificates if this plugin is the elected one."""
        if self._fence.why_not(CALL_SECONDS):
            return
        made = new_certificates(now)
        version = Preconditions(resource_version=named_metadata(secret).resource_version or "")
        patch = {"data": secret_data(made)}
        await self._client.merge_patch(self._secret, patch, preconditions=version, options=WRITE)
        logger.info("certificates for the dashboard stored in %s", self._secret)
        self._show(made)

    def _show(self, found: MutualCertificates) -> bool:
        """Present the server's certificate; returns False if it cannot be used."""
        if found == self._shown:
            return True
        try:
            self._live.show(TlsCredential(found.server, found.server_key, found.authority))
        except CertificateError as error:
            logger.warning("certificate in %s cannot be used: %s", self._secret, error)
            return False
        self._shown = found
        return True


async def read_client_credential(client: ApiClient, secret: ObjectPath) -> TlsCredential | None:
    """The dashboard's certificate and authority; None while the Secret is empty.

    Raises:
        ApiError: If the Secret cannot be read.
    """
    found = certificates_in(await client.get(secret, timeout_seconds=CALL_SECONDS))
    if found is None:
        return None
    return TlsCredential(found.client, found.client_key, found.authority)
