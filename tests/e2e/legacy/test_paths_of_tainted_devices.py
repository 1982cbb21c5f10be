"""Devices that an administrator taints by a DeviceTaintRule, on both paths."""

from __future__ import annotations

import json
import os
import secrets
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from local_cluster import namespaces
from local_cluster.api import Cluster
from tests.e2e.driver import installation, stories
from tests.e2e.driver.echoes import configure, is_waiting, wait_published
from tests.e2e.legacy import slot_stories
from tests.e2e.legacy.drivers import start_drivers
from tests.e2e.legacy.slot_stories import ANY, UNTIL_TOLD, A, B, SlotStory

FOO = "foo0"
TAINT = "example.com/repair:NoExecute (DeviceTaintRule {})"
MAIN = "import sys; from scheduler_plugin.kubectl.commands import main; sys.exit(main())"


@pytest.fixture
def slots(cluster: Cluster, request: pytest.FixtureRequest) -> Iterator[SlotStory]:
    installation.install_objects(cluster)
    drivers = start_drivers(cluster, path="device-plugin")
    yield from slot_stories.told(cluster, drivers, request.node.name)
    drivers.stop()


@pytest.fixture
def story(cluster: Cluster) -> Iterator[stories.Story]:
    """Through DRA; its pods end while there is a driver that unprepares their claims."""
    name = f"c{secrets.token_hex(3)}"
    namespace = namespaces.name_for("rules", name)
    namespaces.create(cluster, namespace)
    installation.install_objects(cluster)
    drivers = start_drivers(cluster, path="dra")
    with tempfile.TemporaryDirectory(prefix="moorage-") as folder:
        yield stories.Story(cluster, drivers, namespace, name, Path(folder))
    namespaces.empty(cluster, namespace)
    drivers.stop()
    namespaces.delete(cluster, namespace)


def taint(cluster: Cluster, name: str, effect: str, **selector: str) -> None:
    spec = {
        "deviceSelector": {"driver": "moorage.dev", **selector},
        "taint": {"key": "example.com/repair", "effect": effect},
    }
    cluster.apply(
        {
            "apiVersion": "resource.k8s.io/v1",
            "kind": "DeviceTaintRule",
            "metadata": {"name": name},
            "spec": spec,
        }
    )


def untaint(cluster: Cluster, name: str) -> None:
    cluster.kubectl("delete", "devicetaintrule", name)


def shown(cluster: Cluster, configuration: str) -> list[dict[str, Any]]:
    """What `kubectl moorage devices` says of a Configuration's devices."""
    folder = Path(cluster.kubectl_program).parent
    env = {**os.environ, "PATH": f"{folder}{os.pathsep}{os.environ['PATH']}"}
    command = (sys.executable, "-c", MAIN, "devices", "--output=json")
    told = subprocess.run(
        (*command, f"--kubeconfig={cluster.kubeconfig}"),
        capture_output=True,
        text=True,
        check=True,
        env=env,
    )
    return [row for row in json.loads(told.stdout) if row["configuration"] == configuration]


def test_slots_of_a_tainted_device_are_withheld_and_who_has_one_keeps_it(
    slots: SlotStory,
) -> None:
    rule = f"repair-{slots.name}"
    slots.configure(FOO, capacity=2)
    slots.wait_offers({ANY: 1, FOO: 2})
    slots.run("holder", {FOO: 1}, A, command=UNTIL_TOLD)

    taint(slots.cluster, rule, "NoExecute", device=slots.device(FOO))

    slots.wait_offers({ANY: 0, FOO: 1}, A)
    slots.wait_offers({ANY: 0, FOO: 0}, B)
    # Node and pod come to kube-scheduler by two watches: a pod that comes first is refused.
    slots.replica_set("newcomer", {FOO: 1}, B)
    (newcomer,) = slots.until("it finds no slot", slots.pending)
    (row,) = shown(slots.cluster, slots.name)
    assert (row["path"], row["state"], row["detail"]) == (
        "DevicePlugin",
        "Tainted",
        TAINT.format(rule),
    )
    slots.tell_to_end("holder")
    slots.until("its container starts again", lambda: slots.restarts("holder") == 1)
    slots.wait_running("holder")
    assert slots.usage() == {slots.slot(FOO, 0): A}

    untaint(slots.cluster, rule)

    slots.wait_running(newcomer)
    slots.wait_usage({slots.slot(FOO, 0): A, slots.slot(FOO, 1): B})


def test_a_rule_keeps_claims_away_evicts_and_is_named(story: stories.Story) -> None:
    rule = f"repair-{story.name}"
    configure(story, capacity=2)
    device = wait_published(story)
    stay = {"command": ["sh", "-c", "exec sleep 100000"]}
    for pod in ("reader", "newcomer"):
        story.claim(pod)
    story.pod(claim="reader", container=stay)
    story.wait_running()

    taint(story.cluster, rule, "NoSchedule", pool=f"shared/{story.name}")

    story.pod("newcomer", claim="newcomer", container=stay)
    story.until("no device is found", lambda: is_waiting(story, "newcomer"))
    (row,) = shown(story.cluster, story.name)
    named = TAINT.format(rule).replace("NoExecute", "NoSchedule")
    assert (row["name"], row["path"], row["state"]) == (device["name"], "DRA", "Tainted")
    assert (row["detail"], row["used"]) == (named, 1)
    story.wait_running()

    taint(story.cluster, rule, "NoExecute", pool=f"shared/{story.name}")

    def is_gone() -> bool:
        return story.cluster.get("pod", "reader", namespace=story.namespace) is None

    story.until("its user is evicted", is_gone)
    untaint(story.cluster, rule)

    story.wait_running("newcomer")
