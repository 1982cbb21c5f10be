"""`kubectl moorage` by a client of its own: `top`, which watches, and all where kubectl cannot."""

from __future__ import annotations

import asyncio
import logging

from kube.api import connect
from scheduler_plugin.asking.view_settings import ViewSettings
from scheduler_plugin.kubectl.cluster_views import show_view
from scheduler_plugin.kubectl.release import told


def run_connected(settings: ViewSettings) -> None:
    """Read, and print one view. Raises KubeconfigError, and as `show_view`."""
    logging.disable(logging.WARNING)  # What cannot be read is said once, at the end.
    asyncio.run(_run(settings))


async def _run(settings: ViewSettings) -> None:
    reading = settings.reading
    async with connect(reading.kubeconfig, context=reading.context) as client:
        if settings.view != "top":
            await show_view(client, settings)
            return
        from scheduler_plugin.asking.apiserver_top import show_live

        await show_live(client, await told(client, reading), settings.every_seconds)
