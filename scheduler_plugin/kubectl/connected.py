"""`kubectl moorage` by a client of its own, where there is no kubectl."""

from __future__ import annotations

import asyncio
import logging

from kube.calls.api import connect
from scheduler_plugin.asking.view_settings import ViewSettings
from scheduler_plugin.kubectl.cluster_views import show_view


def run_connected(settings: ViewSettings) -> None:
    """Read the cluster, and print one view.

    Raises:
        KubeconfigError: If the kubeconfig is not valid; further errors are those of `show_view`.
    """
    logging.disable(logging.WARNING)  # An error is printed once, at the end.
    asyncio.run(_run(settings))


async def _run(settings: ViewSettings) -> None:
    reading = settings.reading
    async with connect(reading.kubeconfig, context=reading.context) as client:
        await show_view(client, settings)
