"""A cluster without DRA, with Moorage in it, once for all stories of this folder."""

from __future__ import annotations

import os
import secrets
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from local_cluster import namespaces
from local_cluster.api import Cluster, ClusterSettings
from local_cluster.fixtures import kept, session_dir
from tests.e2e import rights
from tests.e2e.driver import stories as driver_stories
from tests.e2e.driver.installation import Drivers
from tests.e2e.driver.stories import Story
from tests.e2e.legacy.drivers import start_drivers
from tests.e2e.legacy.slot_stories import SlotStory, told
from tests.e2e.legacy.stories import LegacyStory
from tests.e2e.sharing import installation
from tests.e2e.sharing.extender import Extender
from tests.e2e.sharing.plugin import Plugin
from tests.e2e.webhook.installation import WebhookProcess, registered

KUBERNETES = "1.33"
FAKE_NODES = 2


@pytest.fixture(scope="package")
def legacy_cluster() -> Iterator[Cluster]:
    """Two real nodes and two without kubelets; gone when the next folder's stories begin."""
    own = os.environ.get("MOORAGE_LEGACY_CLUSTER_DIR")
    settings = ClusterSettings(
        work_dir=Path(own).resolve() if own else session_dir("legacy"),
        kubernetes=KUBERNETES,
        fake_nodes=FAKE_NODES,
        kubelet_overlay={"topologyManagerPolicy": "single-numa-node"},
    )
    for cluster in kept(settings, keep=own is not None):
        installation.install_objects(cluster)
        yield cluster
        rights.note(cluster.logs)


@pytest.fixture(scope="module")
def plugin(legacy_cluster: Cluster) -> Iterator[Plugin]:
    """The plugin as a process, ready, and asked by kube-scheduler."""
    running = Plugin.start(legacy_cluster)
    running.wait_ready()
    with installation.asking(legacy_cluster, Extender("127.0.0.1", 10261)):
        yield running
    running.handle.stop()


@pytest.fixture(scope="module")
def webhook(legacy_cluster: Cluster) -> Iterator[WebhookProcess]:
    """The webhook as a process, ready, and asked by the API server."""
    process = WebhookProcess(legacy_cluster)
    process.log.unlink(missing_ok=True)
    process.start("--scheduler-names=moorage")
    try:
        process.wait_ready()
        with registered(legacy_cluster, process):
            yield process
    finally:
        process.kill()


@pytest.fixture(scope="package")
def drivers(legacy_cluster: Cluster) -> Iterator[Drivers]:
    """The drivers of both nodes and of the cluster, as processes."""
    running = start_drivers(legacy_cluster)
    yield running
    running.stop()


@pytest.fixture
def slots(
    legacy_cluster: Cluster, drivers: Drivers, request: pytest.FixtureRequest
) -> Iterator[SlotStory]:
    """A story of slots in a namespace of its own; everything in it is gone at the end."""
    yield from told(legacy_cluster, drivers, request.node.name)


@pytest.fixture
def story(
    plugin: Plugin, webhook: WebhookProcess, request: pytest.FixtureRequest
) -> Iterator[LegacyStory]:
    """A story in a namespace of its own; everything in it is gone at the end."""
    name = f"c{secrets.token_hex(3)}"
    namespace = namespaces.name_for(request.node.name, name)
    with plugin.cluster.api() as api:
        one = LegacyStory(
            plugin.cluster,
            namespace,
            name,
            api,
            plugin=plugin,
            extender=Extender("127.0.0.1", 10261),
        )
        one.begin()
        yield one
        one.end()
        namespaces.delete(plugin.cluster, namespace)


@pytest.fixture
def disks(
    legacy_cluster: Cluster, drivers: Drivers, request: pytest.FixtureRequest
) -> Iterator[Story]:
    """A story of disks in a namespace of its own."""
    name = f"disk-{secrets.token_hex(3)}"
    namespace = namespaces.name_for(request.node.name, name)
    namespaces.create(legacy_cluster, namespace)
    with (
        tempfile.TemporaryDirectory(prefix="moorage-") as folder,
        driver_stories.told(Story(legacy_cluster, drivers, namespace, name, Path(folder))) as one,
    ):
        yield one
    namespaces.delete(legacy_cluster, namespace)
