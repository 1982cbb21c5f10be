"""Builds and runs `moorage-driver shared`."""

from __future__ import annotations

import asyncio
import logging

from driver.cluster_instances import LostNodeSettings
from driver.settings import SharedSettings
from driver.shared_cluster import ClusterSettings, SharedCluster
from kube.api import ApiClient, EventRecorder, LeaderElector, LeadershipLostError, connect

LEASE = "moorage-driver-shared"
CONTROLLER = "moorage.dev/driver-shared"

logger = logging.getLogger(__name__)


async def run_shared(settings: SharedSettings) -> None:
    """Serve the cluster while this process is the elected one, until cancelled."""
    async with connect(settings.kubeconfig) as client:
        elector = LeaderElector(client, LEASE, settings.namespace, settings.identity)
        while True:
            try:
                await elector.lead(lambda: _serve(client, settings))
            except LeadershipLostError as error:
                logger.warning("leadership lost, a candidate again: %s", error)


async def _serve(client: ApiClient, settings: SharedSettings) -> None:
    # All that was known is dropped with the leadership: another may have written since.
    async with asyncio.TaskGroup() as tasks:
        recorder = EventRecorder(client, CONTROLLER, settings.identity)
        tasks.create_task(recorder.run())
        cluster = SharedCluster(
            client,
            ClusterSettings(
                unique_devices_default=settings.unique_devices_default,
                path=settings.path,
                lost_nodes=LostNodeSettings(settings.lost_node_grace, recorder.record),
            ),
            tasks,
        )
        await cluster.run()
