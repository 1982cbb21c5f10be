"""Builds and runs `moorage-webhook`."""

from __future__ import annotations

import asyncio
import gc
import logging
from collections.abc import Callable, Coroutine
from functools import partial
from typing import Any, NoReturn

from kube.calls.api import ApiClient, connect
from kube.http_server import Ending, serving
from kube.live_tls import LiveTls, TlsFiles, follow_files, show_files
from webhook.apiserver import Admission
from webhook.certificates.apiserver import CertificateController
from webhook.certificates.rotation import OwnCa
from webhook.cluster import Cluster
from webhook.http_app import http_app
from webhook.settings import WebhookSettings

logger = logging.getLogger(__name__)

USER_AGENT = "moorage-webhook"
CIPHERS = "ECDHE+AESGCM:ECDHE+CHACHA20"

STOP_SECONDS = 5
"""Time for reviews in flight at the shutdown: as long as the API server waits for them."""


DRAIN_SECONDS = 5.0
"""Time for connections that the API server keeps: each ends with its next request."""


async def serve_webhook(settings: WebhookSettings) -> None:
    """Serve until cancelled.

    Raises:
        KubeconfigError: The address of the API server is unknown.
        CertificateError: The certificate or its key cannot be used.
        CannotListenError: The address is taken.
    """
    async with connect(settings.kubeconfig, user_agent=USER_AGENT) as client:
        cluster = Cluster(client, settings.accounting, settings.about_pods)
        tls = LiveTls(ciphers=CIPHERS)
        why_not_shown, run_certificates = _certificate(client, settings.certificate, tls)
        application = http_app(Admission(cluster), why_not_shown)
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(cluster.run())
            tasks.create_task(run_certificates())
            tasks.create_task(_log_when_ready(cluster))
            async with serving(
                application,
                settings.listen_address,
                tls=tls.context,
                ending=Ending(STOP_SECONDS, DRAIN_SECONDS),
            ) as bound:
                await asyncio.wait([bound.server])
                raise RuntimeError("the server ended") from bound.server.exception()


def _certificate(
    client: ApiClient, source: TlsFiles | OwnCa, tls: LiveTls
) -> tuple[Callable[[], str], Callable[[], Coroutine[Any, Any, NoReturn]]]:
    """Why there is no certificate yet, and the task that manages it; raises CertificateError."""
    if isinstance(source, TlsFiles):  # Another program renews the files.
        return str, partial(follow_files, tls, source, show_files(tls, source))
    controller = CertificateController(client, source, tls)
    return controller.why_not_ready, controller.run


async def _log_when_ready(cluster: Cluster) -> None:
    await cluster.until_ready()
    # Stored objects live long: a garbage collection of them would delay answers.
    gc.collect()
    gc.freeze()
    logger.info("ready")
