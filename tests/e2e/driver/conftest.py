"""The driver on the cluster, once for all stories."""

from __future__ import annotations

import secrets
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from local_cluster.api import Cluster
from tests.e2e.driver import installation
from tests.e2e.driver.installation import Drivers
from tests.e2e.driver.stories import Story, told


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
