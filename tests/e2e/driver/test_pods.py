"""The driver as its users run it: pods from our image, with the manifests of deploy/."""

from __future__ import annotations

import secrets
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from local_cluster.api import Cluster
from local_cluster.image_build import build_image
from tests.e2e.driver.installation import NAMESPACE, ROOT, WORKLOADS, Drivers
from tests.e2e.driver.stories import Story, told

ROLLOUT_SECONDS = 90


@pytest.fixture(scope="module")
def pods(installed: Cluster, drivers: Drivers) -> Iterator[Cluster]:
    """The drivers as pods; those that run as processes rest meanwhile."""
    installed.load_image(build_image(installed.work_dir / "images", "moorage:local"))
    drivers.stop()
    manifests = [ROOT / "deploy/manifests" / name for name in WORKLOADS]
    for manifest in manifests:
        installed.apply(manifest)
    wait_rolled_out(installed)
    yield installed
    for manifest in manifests:
        installed.kubectl("delete", "-f", str(manifest), f"--timeout={ROLLOUT_SECONDS}s")
    drivers.start()


def wait_rolled_out(cluster: Cluster) -> None:
    for workload in ("daemonset/moorage-driver-node", "deployment/moorage-driver-shared"):
        timeout = f"--timeout={ROLLOUT_SECONDS}s"
        cluster.kubectl("rollout", "status", workload, "-n", NAMESPACE, timeout)


@pytest.fixture
def pod_story(pods: Cluster, drivers: Drivers, namespace: str) -> Iterator[Story]:
    with tempfile.TemporaryDirectory(prefix="moorage-") as folder:
        name = f"disk-{secrets.token_hex(3)}"
        with told(Story(pods, drivers, namespace, name, Path(folder))) as one:
            yield one


def test_a_container_reads_the_device_of_its_claim(pod_story: Story) -> None:
    pod_story.plug("hello from a pod's driver")
    pod_story.configure()
    pod_story.claim()
    pod_story.pod()

    pod_story.wait_running()

    assert pod_story.read().splitlines()[-1] == "hello from a pod's driver"
    node, uid = pod_story.pod_node(), pod_story.claim_uid()
    pod_story.delete("pod", "reader")
    pod_story.wait_unprepared(uid, node)


def test_an_updated_driver_takes_over_from_the_pod_before_it(
    pod_story: Story, pods: Cluster
) -> None:
    pod_story.plug("kept")
    pod_story.configure()
    pod_story.claim()
    pod_story.pod("before", node="node-a")
    pod_story.wait_running("before")
    before = pod_story.container("before")

    pods.kubectl("rollout", "restart", "daemonset/moorage-driver-node", "-n", NAMESPACE)
    wait_rolled_out(pods)

    assert pod_story.container("before") == before
    pod_story.pod("after", node="node-a")
    pod_story.wait_running("after")
    uid = pod_story.claim_uid()
    for pod in ("before", "after"):
        pod_story.delete("pod", pod)
    pod_story.wait_unprepared(uid, "node-a")
