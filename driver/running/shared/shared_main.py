"""Builds and runs `moorage-driver shared`."""

from __future__ import annotations

import asyncio
import logging

from driver.plumbing.prometheus import LEADER
from driver.running.monitoring.prometheus_figures import (
    broker_figures,
    cluster_slot_figures,
    serve_metrics,
)
from driver.running.settings import SharedSettings
from driver.running.shared.shared_cluster import SharedCluster
from kube.calls.api import ApiClient, connect
from kube.events.api import EventRecorder
from kube.leases.api import LeaderElector, LeadershipLostError

LEASE = "moorage-driver-shared"
CONTROLLER = "moorage.dev/driver-shared"
USER_AGENT = "moorage-driver-shared"
"""User agent of its requests in audit logs."""

logger = logging.getLogger(__name__)


async def run_shared(settings: SharedSettings) -> None:
    """Serve the cluster while this process is the elected one, until cancelled."""
    leading: list[SharedCluster] = []
    reads = (
        lambda: LEADER.single(len(leading)),
        lambda: cluster_slot_figures(slots for cluster in leading for slots in cluster.slots()),
        lambda: broker_figures(pod for cluster in leading for pod in cluster.broker_pods()),
    )
    async with (
        connect(settings.kubeconfig, user_agent=USER_AGENT) as client,
        asyncio.TaskGroup() as tasks,
    ):
        # A replica that waits for the Lease is ready, too.
        tasks.create_task(serve_metrics(settings.metrics_address, str, *reads))
        elector = LeaderElector(client, LEASE, settings.namespace, settings.holder)
        while True:
            try:
                await elector.lead(lambda: _serve(client, settings, leading))
            except LeadershipLostError as error:
                logger.warning("leadership lost, waiting for the Lease again: %s", error)


async def _serve(client: ApiClient, settings: SharedSettings, leading: list[SharedCluster]) -> None:
    # All state is dropped with the leadership: another leader may have written since.
    async with asyncio.TaskGroup() as tasks:
        recorder = EventRecorder(client, CONTROLLER, settings.holder)
        tasks.create_task(recorder.run())
        cluster = SharedCluster(client, settings, recorder.record, tasks)
        leading.append(cluster)
        try:
            await cluster.run()
        finally:
            leading.remove(cluster)
