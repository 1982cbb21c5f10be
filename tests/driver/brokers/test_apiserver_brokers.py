"""Beside Akri's own controller nothing is made, and without it everything is, at once."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from driver.api import NODE_LABEL, ConfigurationName
from driver.brokers.akri import AKRIS_CONTROLLERS
from driver.brokers.apiserver_brokers import Brokers
from driver.brokers.apiserver_workloads import BrokerWorkloads
from driver.brokers.states import AKRI_RUNS
from kube.kinds import CONFIGURATIONS, INSTANCES, PODS
from tests.driver.brokers.broker_builders import a_pod_spec
from tests.driver.brokers.controllers import making_brokers
from tests.driver.builders import NOW
from tests.driver.tasks import until
from tests.fakes.watched_apiserver import WatchedApiServer

ACCOUNT = "moorage-brokers"
NAME = ConfigurationName("camera")
BROKER = "camera-0a1b2c-pod"
LABEL = {"app.kubernetes.io/name": "akri-controller"}
AKRI = PODS.at("akri-controller-1", "akri")


def a_controller(phase: str = "Running", **metadata: Any) -> dict[str, Any]:
    found = {"name": AKRI.name, "namespace": AKRI.namespace, "labels": LABEL}
    return {"metadata": {**found, **metadata}, "status": {"phase": phase}}


@pytest.fixture
async def server() -> WatchedApiServer:
    """A Configuration with brokers, and one device of it."""
    server = WatchedApiServer()
    configuration = {"name": NAME, "namespace": "lab", "generation": 1}
    broker = {"brokerPodSpec": a_pod_spec()}
    await server.put(CONFIGURATIONS, {"metadata": configuration, "spec": {"brokerSpec": broker}})
    device = {
        "name": "camera-0a1b2c",
        "namespace": "lab",
        "labels": {NODE_LABEL: "node-a"},
        "creationTimestamp": NOW.isoformat(),
    }
    spec = {"configurationName": NAME, "capacity": 1, "nodes": ["node-a"], "shared": False}
    await server.put(INSTANCES, {"metadata": device, "spec": spec})
    return server


def reason(brokers: Brokers) -> str:
    """The reason of the condition; "" before there is one."""
    found = brokers.condition("lab", NAME, None)
    return found.reason if found else ""


async def test_brokers_are_made_where_akris_controller_is_not(
    server: WatchedApiServer, tmp_path: Path
) -> None:
    async with making_brokers(server, tmp_path, "lab"):
        await until(lambda: server.written == [BROKER])


async def test_nothing_is_made_beside_akris_controller_until_it_goes(
    server: WatchedApiServer, tmp_path: Path
) -> None:
    await server.put(PODS, a_controller())
    async with making_brokers(server, tmp_path, "lab") as brokers:
        await until(lambda: reason(brokers) == "AkriControllerRuns")
        assert not server.written

        await server.remove(AKRI)

        await until(lambda: server.written == [BROKER])
        assert reason(brokers) == "Waiting"


async def test_a_controller_that_comes_later_is_noticed(
    server: WatchedApiServer, tmp_path: Path
) -> None:
    async with making_brokers(server, tmp_path, "*") as brokers:
        await until(lambda: server.written == [BROKER])

        await server.put(PODS, a_controller("Pending"))
        await until(lambda: reason(brokers) == "AkriControllerRuns")
        await server.remove(PODS.at(BROKER, "lab"))
        await server.put(PODS, a_controller("Running"))
        assert reason(brokers) == "AkriControllerRuns"
        assert server.written == [BROKER]

        await server.put(PODS, a_controller("Failed"))
        await until(lambda: server.written == [BROKER, BROKER])


@pytest.mark.parametrize(
    "ended",
    [
        a_controller("Succeeded"),
        a_controller("Failed"),
        a_controller(deletionTimestamp="2026-11-21T12:00:00Z"),
        a_controller(labels={"app.kubernetes.io/name": "akri-agent"}),
    ],
    ids=["succeeded", "failed", "terminating", "another program"],
)
async def test_a_controller_that_has_ended_keeps_nobody_from_making_brokers(
    server: WatchedApiServer, tmp_path: Path, ended: dict[str, Any]
) -> None:
    await server.put(PODS, ended)
    async with making_brokers(server, tmp_path, "lab"):
        await until(lambda: server.written == [BROKER])


async def test_nothing_is_written_before_it_is_known_whether_akris_controller_runs(
    server: WatchedApiServer, tmp_path: Path
) -> None:
    server.held.add(str(AKRIS_CONTROLLERS))
    workloads: list[BrokerWorkloads] = []
    async with making_brokers(server, tmp_path, "lab", made=workloads.append) as brokers:
        await until(workloads[0].synced.is_set)
        assert not server.written
        assert brokers.condition("lab", NAME, None) is None
        # As another process wrote it: it does not go and come back.
        assert brokers.condition("lab", NAME, AKRI_RUNS.condition) == AKRI_RUNS.condition

        await server.release(AKRIS_CONTROLLERS)

        await until(lambda: server.written == [BROKER])


async def test_without_namespaces_nobody_looks_for_akris_controller(
    server: WatchedApiServer, tmp_path: Path
) -> None:
    server.held.add(str(AKRIS_CONTROLLERS))
    async with making_brokers(server, tmp_path) as brokers:
        await until(lambda: reason(brokers) == "NotAllowed")
