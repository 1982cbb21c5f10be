"""The controller of brokers: Configurations alternate, and what was too much is made later."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from driver.api import ConfigurationName
from driver.brokers import apiserver_writes
from driver.brokers.apiserver_brokers import WORKERS
from kube.kinds import CONFIGURATIONS, INSTANCES, PODS
from kube.objects import JsonObject
from kube.resources import ObjectPath
from tests.driver.brokers.broker_builders import a_pod_spec
from tests.driver.brokers.controllers import making_brokers
from tests.driver.builders import NOW
from tests.driver.tasks import until
from tests.fakes.watched_apiserver import WatchedApiServer

NAMESPACE = "lab"


def a_configuration(name: str, **spec: Any) -> JsonObject:
    wanted = {"brokerSpec": {"brokerPodSpec": a_pod_spec()}, **spec}
    return {"metadata": {"name": name, "namespace": NAMESPACE, "generation": 1}, "spec": wanted}


def an_instance(configuration: str, number: int) -> JsonObject:
    spec = {"configurationName": configuration, "capacity": 1, "nodes": ["node-a"]}
    metadata = {
        "name": f"{configuration}-{number:06x}",
        "namespace": NAMESPACE,
        "labels": {"moorage.dev/node": "node-a"},
        "creationTimestamp": NOW.isoformat(),
    }
    return {"metadata": metadata, "spec": spec}


def pods(server: WatchedApiServer, configuration: str) -> list[str]:
    """Broker Pods, by their names."""
    return [name for name in server.names(PODS) if name.startswith(f"{configuration}-")]


def path_of(configuration: str, number: int) -> ObjectPath:
    return INSTANCES.path_of(an_instance(configuration, number))


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> WatchedApiServer:
    monkeypatch.setattr(apiserver_writes, "CREATE_SECONDS", 0.0)
    return WatchedApiServer()


async def test_the_brokers_of_many_devices_delay_nothing_else(
    server: WatchedApiServer, tmp_path: Path
) -> None:
    """Not what is to be deleted, and those of another Configuration for a few creations only."""
    server.creations = asyncio.Semaphore(1)
    for name in ("many", "few"):
        await server.put(CONFIGURATIONS, a_configuration(name))
    for name, number in (*(("many", n) for n in range(50)), ("few", 0)):
        await server.put(INSTANCES, an_instance(name, number))

    async with making_brokers(server, tmp_path, "*"):
        await until(lambda: bool(pods(server, "many")))
        await server.remove(path_of("many", 0))
        await until(lambda: not pods(server, "many"))

        for _ in range(2 * WORKERS):
            server.creations.release()
        await until(lambda: len(server.written) > 2 * WORKERS)
        assert pods(server, "few")


async def test_what_was_too_much_is_made_once_it_no_longer_is(
    server: WatchedApiServer, tmp_path: Path
) -> None:
    await server.put(CONFIGURATIONS, a_configuration("some", maxBrokers=2))
    for number in range(3):
        await server.put(INSTANCES, an_instance("some", number))

    async with making_brokers(server, tmp_path, "*") as brokers:

        def reason() -> str:
            found = brokers.condition(NAMESPACE, ConfigurationName("some"), None)
            return found.reason if found else ""

        await until(lambda: reason() == "TooManyBrokers")
        assert pods(server, "some") == []
        await server.remove(path_of("some", 1))

        await until(lambda: len(pods(server, "some")) == 2)
        await until(lambda: reason() == "Waiting")
    assert sorted(pods(server, "some")) == ["some-000000-pod", "some-000002-pod"]
