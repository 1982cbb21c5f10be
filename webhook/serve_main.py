"""Builds and runs `moorage-webhook`."""

from __future__ import annotations

import asyncio
import gc
import logging

from kube.api import connect
from webhook.apiserver import Admission
from webhook.cluster import Cluster
from webhook.https_server import Application, HttpsServer
from webhook.settings import WebhookSettings

logger = logging.getLogger(__name__)


async def serve_webhook(settings: WebhookSettings) -> None:
    """Serve until cancelled.

    Raises:
        KubeconfigError: Nobody says where the API server is.
        CertificateError: The certificate or its key cannot be used.
        OSError: The address is taken.
    """
    async with connect(settings.kubeconfig) as client:
        cluster = Cluster(client, settings.accounting, settings.about_pods)
        server = HttpsServer(
            Application(Admission(cluster)),
            settings.listen_address,
            settings.certificate,
            settings.key,
        )
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(cluster.run())
            tasks.create_task(_tell_when_ready(cluster))
            await server.run()


async def _tell_when_ready(cluster: Cluster) -> None:
    await cluster.until_ready()
    # What the stores hold lives long: looking through it for garbage would stop the answers.
    gc.collect()
    gc.freeze()
    logger.info("ready")
