"""Builds and runs `moorage-webhook`."""

from __future__ import annotations

import asyncio
import gc
import logging
from typing import NoReturn

from kube.api import ApiClient, LiveTls, TlsFiles, connect, follow_files, show_files
from kube.http_server import Ending, serving
from webhook.apiserver import Admission
from webhook.arguments import WebhookSettings
from webhook.certificates.apiserver import CertificateKeeper
from webhook.certificates.rotation import OwnCa
from webhook.cluster import Cluster
from webhook.http_app import http_app

logger = logging.getLogger(__name__)

USER_AGENT = "moorage-webhook"
CIPHERS = "ECDHE+AESGCM:ECDHE+CHACHA20"

STOP_SECONDS = 5
"""For reviews under way when it stops: as long as the API server waits for them."""


DRAIN_SECONDS = 5.0
"""For connections that the API server keeps: those in use are told to end with their next call."""


async def serve_webhook(settings: WebhookSettings) -> None:
    """Serve until cancelled.

    Raises:
        KubeconfigError: Nobody says where the API server is.
        CertificateError: The certificate or its key cannot be used.
        CannotListenError: The address is taken.
    """
    async with connect(settings.kubeconfig, user_agent=USER_AGENT) as client:
        cluster = Cluster(client, settings.accounting, settings.about_pods)
        tls = LiveTls(ciphers=CIPHERS)
        certificate = _certificate(client, settings.certificate, tls)
        application = http_app(Admission(cluster), certificate.why_not_ready)
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(cluster.run())
            tasks.create_task(certificate.run())
            tasks.create_task(_tell_when_ready(cluster))
            async with serving(
                application,
                settings.listen_address,
                tls=tls.context,
                ending=Ending(STOP_SECONDS, DRAIN_SECONDS),
            ) as bound:
                await asyncio.wait([bound.server])
                raise RuntimeError("the server ended") from bound.server.exception()


class _FromFiles:
    """A certificate that somebody else keeps."""

    def __init__(self, files: TlsFiles, tls: LiveTls) -> None:
        """Raises CertificateError."""
        self._files, self._tls = files, tls
        self._first = show_files(tls, files)

    def why_not_ready(self) -> str:
        return ""

    async def run(self) -> NoReturn:
        await follow_files(self._tls, self._files, self._first)


def _certificate(
    client: ApiClient, source: TlsFiles | OwnCa, tls: LiveTls
) -> _FromFiles | CertificateKeeper:
    if isinstance(source, TlsFiles):
        return _FromFiles(source, tls)
    return CertificateKeeper(client, source, tls)


async def _tell_when_ready(cluster: Cluster) -> None:
    await cluster.until_ready()
    # What the stores hold lives long: looking through it for garbage would stop the answers.
    gc.collect()
    gc.freeze()
    logger.info("ready")
