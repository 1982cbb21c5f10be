"""Stories on the real Kubernetes of deploy/local; its fixtures come from `local_cluster`."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from local_cluster.api import Cluster
from tests.e2e import rights

HERE = Path(__file__).parent

UNCLOSED = pytest.mark.filterwarnings("ignore:unclosed:ResourceWarning")
"""Python 3.11 does not close a connection whose maker is cancelled just before TLS begins. That
happens where servers are killed, and the collector closes it."""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Everything in this folder needs the cluster, so nobody has to say so in each file."""
    for item in items:
        if item.path.is_relative_to(HERE):
            item.add_marker(pytest.mark.e2e)
            item.add_marker(UNCLOSED)


@pytest.fixture(scope="session")
def cluster(cluster: Cluster) -> Iterator[Cluster]:
    """That of `local_cluster.fixtures`; before it goes, its audit log is read."""
    yield cluster
    rights.note(cluster.logs)


@pytest.fixture(scope="session")
def apiserver(apiserver: Cluster) -> Iterator[Cluster]:
    """The same for the API server alone."""
    yield apiserver
    rights.note(apiserver.logs)
