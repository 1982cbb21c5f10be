"""Builds and runs `moorage-scheduler-plugin dashboard`."""

from __future__ import annotations

import asyncio
import gc
import logging
from contextlib import aclosing
from typing import NoReturn

from kube.calls.api import ApiClient, connect
from scheduler_plugin.cluster.apiserver_lookups import ClaimLookups
from scheduler_plugin.cluster.stores import ClusterWorld
from scheduler_plugin.dashboard.apiserver_reviews import Reviews
from scheduler_plugin.dashboard.cluster_claims import NamedClaims
from scheduler_plugin.dashboard.cluster_events import ClusterEvents
from scheduler_plugin.dashboard.cluster_snapshots import Snapshots
from scheduler_plugin.dashboard.http_app import site_app
from scheduler_plugin.dashboard.http_views import Views
from scheduler_plugin.dashboard.leader.http_leader import Leader, LeaderSettings
from scheduler_plugin.dashboard.recent_events import Recent
from scheduler_plugin.dashboard_settings import DashboardSettings
from scheduler_plugin.extender.http_server import serving

logger = logging.getLogger(__name__)

USER_AGENT = "moorage-dashboard"


class ServerEndedError(Exception):
    """Raised when the server has ended, so that no viewer is answered any more."""


async def run_dashboard(settings: DashboardSettings) -> None:
    """Serve viewers until cancelled; then finish requests under way."""
    async with connect(settings.kubeconfig, user_agent=USER_AGENT) as client:
        dashboard = Dashboard(client, settings)
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(dashboard.run())
            async with serving(site_app(dashboard.views), settings.listen_address) as bound:
                logger.info("listening host=%s port=%d", bound.host, bound.port)
                await asyncio.wait([bound.server])
                raise ServerEndedError("the server ended") from bound.server.exception()


class Dashboard:
    """All parts of the dashboard, connected."""

    def __init__(self, client: ApiClient, settings: DashboardSettings) -> None:
        # Only evictions need nodes and the requests of all pods.
        self._cluster = cluster = ClusterWorld(
            client, settings.accounting, pod_groups=settings.pod_groups, follows_nodes=False
        )
        recent = Recent()
        self._snapshots = Snapshots(cluster.world, recent, cluster.inventory.devices)
        self._snapshots.cluster_events = ClusterEvents(client, recent)
        self._lookups = ClaimLookups(cluster.refresh_claim)
        self._claims = NamedClaims(cluster.world, self._lookups)
        self._leader = Leader(
            client,
            LeaderSettings(
                lease=settings.lease_path, port=settings.plugin_port, secret=settings.secret_path
            ),
        )
        reviews, why_not_known = Reviews(client), cluster.why_not_known
        self.views = Views(cluster.world, self._snapshots, reviews, self._leader, why_not_known)

    async def run(self) -> NoReturn:
        """Follow the cluster, and make snapshots for viewers, until cancelled."""
        async with aclosing(self._leader), asyncio.TaskGroup() as tasks:
            tasks.create_task(self._cluster.run())
            await self._cluster.in_sync()
            # The stores' objects live long: to collect them again and again would delay answers.
            gc.collect()
            gc.freeze()
            self._cluster.subscribe(self._claims.changed)
            self._cluster.subscribe(self._snapshots.changed)
            self._claims.begin()
            tasks.create_task(self._lookups.run())
            tasks.create_task(self._snapshots.run())
        raise AssertionError("the cluster is followed until cancelled")
