"""The scheduler plugin beside kube-scheduler, once for all stories."""

from __future__ import annotations

import os
import secrets
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from local_cluster import namespaces
from local_cluster.api import Cluster
from tests.e2e.driver import installation as driver_installation
from tests.e2e.driver.installation import Drivers
from tests.e2e.driver.stories import Story as DriverStory
from tests.e2e.driver.stories import told
from tests.e2e.sharing import installation, silent_watch
from tests.e2e.sharing.extender import Extender
from tests.e2e.sharing.plugin import Plugin
from tests.e2e.sharing.silent_watch import SilentWatch
from tests.e2e.sharing.stories import Story

FAKE_NODES = 2


@pytest.fixture(scope="package")
def shared_cluster(cluster: Cluster) -> Iterator[Cluster]:
    """The cluster with Moorage's objects, and nodes without kubelets."""
    installation.install_objects(cluster)
    with cluster.reconfigured(fake_nodes=FAKE_NODES):
        yield cluster


@pytest.fixture(scope="package")
def extender(shared_cluster: Cluster) -> Iterator[Extender]:
    """Where kube-scheduler asks; other folders' tests find it asking nobody."""
    handle, extender = installation.start_proxy(shared_cluster)
    with installation.asking(shared_cluster, extender):
        yield extender
    handle.stop()


@pytest.fixture(scope="package")
def plugin(shared_cluster: Cluster, extender: Extender) -> Iterator[Plugin]:
    """The plugin as a process, ready."""
    running = Plugin.start(shared_cluster)
    running.wait_ready()
    yield running
    running.handle.stop()


@pytest.fixture
def story(
    plugin: Plugin,
    extender: Extender,
    used_namespaces: list[str],
    request: pytest.FixtureRequest,
) -> Iterator[Story]:
    """A story in a namespace of its own; everything in it is gone at the end."""
    namespace = namespaces.name_for(request.node.name, f"{os.getpid()}-{len(used_namespaces)}")
    used_namespaces.append(namespace)
    name = f"c{secrets.token_hex(3)}"
    with plugin.cluster.api() as api:
        one = Story(plugin.cluster, namespace, name, api, plugin=plugin, extender=extender)
        one.begin()
        yield one
        one.end()


@pytest.fixture
def hasty(story: Story) -> Iterator[Story]:
    """A story whose plugin clears what has been left over for half a second."""
    with story.plugin.started_with("--leftover-grace", "0.5"):
        yield story
        # Whatever runs at the end would be cleared by the other plugin's grace only.
        story.end_pods()


@pytest.fixture
def watched(story: Story) -> Iterator[tuple[Story, SilentWatch]]:
    """A story whose plugin hears of claims by a watch that may fall silent."""
    with (
        silent_watch.watched(story.cluster) as watch,
        story.plugin.started_with("--kubeconfig", str(watch.kubeconfig)),
    ):
        yield story, watch
        story.end_pods()


@pytest.fixture(scope="module")
def drivers(plugin: Plugin) -> Iterator[Drivers]:
    """Our driver on both nodes, for the modules whose stories' containers run."""
    running = driver_installation.start_processes(plugin.cluster)
    yield running
    running.stop()


@pytest.fixture
def disk(story: Story, drivers: Drivers) -> Iterator[DriverStory]:
    """One disk, which each of the two nodes publishes; its class has the story's name."""
    with tempfile.TemporaryDirectory(prefix="moorage-") as folder:
        one = DriverStory(story.cluster, drivers, story.namespace, story.name, Path(folder))
        with told(one):
            one.plug()
            one.configure()
            for node in drivers.nodes:
                one.wait_devices(1, node)
            story.until("its class is there", lambda: story.find("class", story.name))
            yield one
            story.end_pods()
            one.delete("akric", story.name)
