"""The driver on the cluster, once for all stories."""

from __future__ import annotations

import secrets
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from local_cluster.api import Cluster
from tests.e2e.driver import brokers, installation, lost_nodes
from tests.e2e.driver.brokers import BrokerStory
from tests.e2e.driver.installation import Drivers
from tests.e2e.driver.stories import SCHEDULER, Story, told


@pytest.fixture(scope="session")
def installed(cluster: Cluster) -> Cluster:
    """The cluster with Moorage's objects."""
    installation.install_objects(cluster)
    return cluster


@pytest.fixture(scope="package")
def drivers(installed: Cluster) -> Iterator[Drivers]:
    """The drivers as processes; other folders' tests bring drivers of their own."""
    running = installation.start_processes(installed)
    yield running
    running.stop()


@pytest.fixture
def story(installed: Cluster, drivers: Drivers, namespace: str) -> Iterator[Story]:
    """A story of its own; its disks are unplugged and its folder removed at the end."""
    with tempfile.TemporaryDirectory(prefix="moorage-") as folder:
        name = f"disk-{secrets.token_hex(3)}"
        with told(Story(installed, drivers, namespace, name, Path(folder))) as one:
            yield one


@pytest.fixture
def lost_node(cluster: Cluster) -> Iterator[str]:
    """A Node that nobody runs."""
    with lost_nodes.lost_node(cluster) as name:
        yield name


@pytest.fixture
def broker_story(story: Story) -> Iterator[BrokerStory]:
    """A Configuration with brokers, in a namespace that may have them."""
    with brokers.told(story.cluster, story.namespace, story.name, schedulerName=SCHEDULER) as found:
        yield found
