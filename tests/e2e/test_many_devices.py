"""Many devices go with their Configuration: beside busy neighbours, and one device of another."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

import pytest

from local_cluster.api import Cluster
from moorage_demo.release import install_release
from tests.e2e import rights
from tests.e2e.charts import SYSTEM, bare_cluster

MANY = 2_000
"""Of each of two nodes. A cluster on two cores takes minutes to make them, and the many of one
node's pool are published as 5,000 are."""

SECONDS = 600.0
BUSY = "while True: pass"


@pytest.fixture(scope="module")
def released() -> Iterator[Cluster]:
    """Two nodes with Moorage from its chart."""
    with bare_cluster("many", nodes=2) as own:
        install_release(own)
        yield own
        rights.note(own.logs)


@contextmanager
def busy_neighbours() -> Iterator[None]:
    """As many processes as the machine has cores for us, that never rest."""
    with ExitStack() as stack:
        for _ in range(2):
            process = stack.enter_context(subprocess.Popen([sys.executable, "-c", BUSY]))
            stack.callback(process.kill)
        yield


def configure(cluster: Cluster, name: str, devices: int) -> None:
    descriptions = [f"device-{number}" for number in range(devices)]
    details = json.dumps({"descriptions": descriptions, "shared": False})
    cluster.apply(
        {
            "apiVersion": "akri.sh/v0",
            "kind": "Configuration",
            "metadata": {"name": name, "namespace": "default"},
            "spec": {"discoveryHandler": {"name": "debugEcho", "discoveryDetails": details}},
        }
    )


def instances(cluster: Cluster) -> int:
    """How many there are of the many."""
    found = cluster.list("instances", namespace="default")
    return sum(one["spec"]["configurationName"] == "many" for one in found)


def published(cluster: Cluster, name: str) -> int:
    """How many devices of a Configuration claims may get."""
    return sum(
        device["attributes"]["configuration"]["string"] == name and not device.get("taints")
        for found in cluster.list("resourceslices")
        for device in found["spec"].get("devices") or ()
    )


def restarts(cluster: Cluster) -> dict[str, int]:
    """Of our containers, where there are any."""
    return {
        f"{pod['metadata']['name']}/{one['name']}": one["restartCount"]
        for pod in cluster.list("pods", namespace=SYSTEM)
        for one in pod["status"].get("containerStatuses") or ()
        if one["restartCount"]
    }


def test_one_device_is_published_while_thousands_go_and_nobody_is_ended(
    released: Cluster,
) -> None:
    configure(released, "many", MANY)
    # Two of the names of 4,000 devices may have the same six digits.
    most = 2 * MANY - 20
    released.wait_until("all are there", lambda: instances(released) >= most, seconds=SECONDS)
    released.wait_until(
        "all are published", lambda: published(released, "many") >= most, seconds=SECONDS
    )

    with busy_neighbours():
        released.kubectl("delete", "configuration", "many", "-n", "default", "--wait=false")
        configure(released, "one", 1)
        released.wait_until(
            "it is published", lambda: published(released, "one") == 2, seconds=SECONDS
        )
        left = instances(released)
        released.wait_until("all went", lambda: instances(released) == 0, seconds=SECONDS)
        released.wait_until(
            "no slice tells of them", lambda: published(released, "many") == 0, seconds=SECONDS
        )

    assert left, "it waited until the last of them had gone"
    assert restarts(released) == {}
