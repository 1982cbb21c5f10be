"""Two replicas, once for all stories of this folder."""

from __future__ import annotations

import os
import secrets
from collections.abc import Iterator

import pytest

from local_cluster import namespaces
from local_cluster.api import Cluster
from tests.e2e.failover import replicas
from tests.e2e.failover.replicas import Replicas
from tests.e2e.failover.stories import Story
from tests.e2e.sharing import installation
from tests.e2e.sharing.plugin import Plugin

FAKE_NODES = 2


@pytest.fixture(scope="package")
def both(cluster: Cluster) -> Iterator[Replicas]:
    """Two replicas, beside all other parts of the cluster, and nodes without kubelets."""
    installation.install_objects(cluster)
    with cluster.reconfigured(fake_nodes=FAKE_NODES), replicas.running(cluster) as started:
        yield started


@pytest.fixture
def story(
    cluster: Cluster,
    both: Replicas,
    used_namespaces: list[str],
    request: pytest.FixtureRequest,
) -> Iterator[Story]:
    """A story in a namespace of its own; everything in it is gone at the end."""
    leader, follower = both.roles()
    namespace = namespaces.name_for(request.node.name, f"{os.getpid()}-{len(used_namespaces)}")
    used_namespaces.append(namespace)
    with cluster.api() as api:
        one = Story(
            cluster,
            namespace,
            f"c{secrets.token_hex(3)}",
            api,
            plugin=Plugin(cluster, leader.plugin),
            extender=leader.extender,
            replicas=both,
            leader=leader,
            follower=follower,
        )
        one.begin()
        yield one
        one.end()
