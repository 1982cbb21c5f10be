"""The controller of brokers beside a fake API server on a real socket."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from datetime import timedelta
from pathlib import Path

from driver.brokers.apiserver_brokers import Brokers
from driver.brokers.apiserver_workloads import BrokerWorkloads
from driver.instances.cluster_instances import ClusterInstances, LostNodeSettings
from driver.offer_paths import OfferPath
from tests.driver.tasks import running
from tests.fakes.watched_apiserver import WatchedApiServer, watched

ACCOUNT = "moorage-brokers"


@asynccontextmanager
async def making_brokers(
    server: WatchedApiServer,
    folder: Path,
    *namespaces: str,
    made: Callable[[BrokerWorkloads], None] = lambda _: None,
) -> AsyncIterator[Brokers]:
    async with watched(folder, server) as client:
        settings = LostNodeSettings(timedelta(minutes=5), lambda _: None)
        instances = ClusterInstances(client, dict, settings)
        instances.path = OfferPath.DEVICE_PLUGIN
        allowed = frozenset(namespaces)
        workloads = BrokerWorkloads(client, allowed, ACCOUNT, has_claims=False)
        made(workloads)
        brokers = Brokers(client, instances, workloads, allowed, lambda: None)
        async with running(instances.store.run()), running(brokers.run()):
            yield brokers
