"""The controller of brokers: who has the turn, and what follows when there were too many."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import timedelta
from typing import Any, cast

import pytest

from driver.api import ConfigurationName
from driver.brokers import apiserver_writes
from driver.brokers.apiserver_brokers import WORKERS, Brokers
from driver.brokers.apiserver_workloads import BrokerWorkloads
from driver.instances.cluster_instances import ClusterInstances, LostNodeSettings
from driver.offer_paths import OfferPath
from kube.calls.api import ApiClient
from kube.kinds import CONFIGURATIONS, INSTANCES, PODS
from kube.objects import JsonObject
from kube.resources import ObjectPath
from tests.driver.brokers.broker_builders import a_pod_spec
from tests.driver.tasks import running, until
from tests.fakes.watched_cluster import FakeWatchedCluster

NAMESPACE = "default"


def a_configuration(name: str, **spec: Any) -> JsonObject:
    wanted = {"brokerSpec": {"brokerPodSpec": a_pod_spec()}, **spec}
    return {"metadata": {"name": name, "namespace": NAMESPACE}, "spec": wanted}


def an_instance(configuration: str, number: int) -> JsonObject:
    name = f"{configuration}-{number:06x}"
    spec = {
        "configurationName": configuration,
        "cdiName": f"akri.sh/{name}",
        "capacity": 1,
        "nodes": ["node-a"],
    }
    metadata = {"name": name, "namespace": NAMESPACE, "labels": {"moorage.dev/node": "node-a"}}
    return {"metadata": metadata, "spec": spec}


def pods(cluster: FakeWatchedCluster, configuration: str) -> list[str]:
    """Broker Pods, by their names."""
    names = (path.name for path in cluster.objects if path.resource == PODS)
    return [name for name in names if name.startswith(f"{configuration}-")]


def path_of(configuration: str, number: int) -> ObjectPath:
    return INSTANCES.path_of(an_instance(configuration, number))


@asynccontextmanager
async def controller(cluster: FakeWatchedCluster) -> AsyncIterator[Brokers]:
    """The controller of this cluster, which offers devices by the device plugin."""
    client = cast("ApiClient", cluster)
    settings = LostNodeSettings(timedelta(minutes=5), lambda _: None)
    instances = ClusterInstances(client, dict, settings)
    instances.path = OfferPath.DEVICE_PLUGIN
    workloads = BrokerWorkloads(client, {"*"}, "moorage-brokers", has_claims=False)
    brokers = Brokers(client, instances, workloads, frozenset({"*"}), lambda: None)
    async with running(instances.store.run()), running(brokers.run()):
        yield brokers


@pytest.fixture
def cluster(monkeypatch: pytest.MonkeyPatch) -> FakeWatchedCluster:
    monkeypatch.setattr(apiserver_writes, "CREATE_SECONDS", 0.0)
    return FakeWatchedCluster()


async def test_the_brokers_of_many_devices_delay_nothing_else(cluster: FakeWatchedCluster) -> None:
    """Not what is to be deleted, and those of another Configuration for a few turns only."""
    cluster.creations = asyncio.Semaphore(1)
    cluster.put(CONFIGURATIONS, a_configuration("many"))
    cluster.put(CONFIGURATIONS, a_configuration("few"))
    for name, number in (*(("many", n) for n in range(50)), ("few", 0)):
        cluster.put(INSTANCES, an_instance(name, number))

    async with controller(cluster):
        await until(lambda: bool(pods(cluster, "many")))
        cluster.remove(path_of("many", 0))
        await until(lambda: not pods(cluster, "many"))

        for _ in range(2 * WORKERS):
            cluster.creations.release()
        await until(lambda: len(cluster.created) > 2 * WORKERS)
        assert pods(cluster, "few")


async def test_what_was_too_much_is_made_once_it_no_longer_is(cluster: FakeWatchedCluster) -> None:
    cluster.put(CONFIGURATIONS, a_configuration("some", maxBrokers=2))
    for number in range(3):
        cluster.put(INSTANCES, an_instance("some", number))

    async with controller(cluster) as brokers:

        def reason() -> str:
            found = brokers.condition(NAMESPACE, ConfigurationName("some"), None)
            return found.reason if found else ""

        await until(lambda: reason() == "TooManyBrokers")
        assert pods(cluster, "some") == []
        cluster.remove(path_of("some", 1))

        await until(lambda: len(pods(cluster, "some")) == 2)
        await until(lambda: reason() == "Waiting")
    assert pods(cluster, "some") == ["some-000000-pod", "some-000002-pod"]
