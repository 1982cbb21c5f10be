"""A cluster that has DRA, with the driver told to serve the device plugin."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from local_cluster.api import Cluster
from tests.e2e.driver import installation
from tests.e2e.driver.installation import Drivers
from tests.e2e.legacy.drivers import start_drivers
from tests.e2e.legacy.slot_stories import ANY, A, B, SlotStory, told

FOO = "foo0"


@pytest.fixture(scope="module")
def forced(cluster: Cluster) -> Iterator[Drivers]:
    installation.install_objects(cluster)
    drivers = start_drivers(cluster, path="device-plugin")
    yield drivers
    drivers.stop()


@pytest.fixture
def slots(cluster: Cluster, forced: Drivers, request: pytest.FixtureRequest) -> Iterator[SlotStory]:
    yield from told(cluster, forced, request.node.name)


def test_devices_are_offered_as_without_dra_and_in_no_slice(slots: SlotStory) -> None:
    slots.configure(FOO, capacity=2)
    slots.wait_offers({ANY: 1, FOO: 2})

    slots.run("any", {ANY: 1}, A)
    slots.run("one", {FOO: 1}, B)

    slots.wait_usage({slots.slot(FOO, 0): slots.by_any(FOO, A), slots.slot(FOO, 1): B})
    assert slots.environment("any")["DEBUG_ECHO_DESCRIPTION"] == FOO
    assert slots.all("claim") == []
    specs = [slice_["spec"] for slice_ in slots.cluster.list("resourceslices")]
    assert not any(spec.get("devices") for spec in specs if spec["driver"] == "moorage.dev")
    for pod in ("any", "one"):
        slots.end_pod(pod)
    slots.wait_usage({})
