"""The driver as its users run it: pods from our image, with the manifests of deploy/."""

from __future__ import annotations

import re
import secrets
import shutil
import tempfile
from collections import defaultdict
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml

from local_cluster.api import Cluster
from local_cluster.image_build import build_image
from tests.e2e.driver.installation import NAMESPACE, ROOT, WORKLOADS, Drivers
from tests.e2e.driver.stories import Story, told
from tests.e2e.driver.test_handlers import HandlerProcess

ROLLOUT_SECONDS = 90
HANDLERS = "daemonset/moorage-network-handlers"

HANDLER_DETAILS = {
    "onvif": "discoveryTimeoutSeconds: 1",
    "opcua": "opcuaDiscoveryMethod: {standard: {discoveryUrls: ['opc.tcp://127.0.0.1:1/']}}",
}


@pytest.fixture(scope="module")
def pods(installed: Cluster, drivers: Drivers) -> Iterator[Cluster]:
    """The drivers as pods; those that run as processes rest meanwhile."""
    installed.load_image(build_image(installed.work_dir / "images", "moorage:local"))
    drivers.stop()
    manifests = [ROOT / "deploy/manifests" / name for name in WORKLOADS]
    for manifest in manifests:
        installed.apply(_chosen(manifest.read_text(), installed))
    wait_rolled_out(installed)
    yield installed
    for manifest in manifests:
        installed.kubectl("delete", "-f", str(manifest), f"--timeout={ROLLOUT_SECONDS}s")
    drivers.start()


def _chosen(manifest: str, cluster: Cluster) -> str:
    """With the path that is chosen by hand where the driver would not take it by itself."""
    if not cluster.settings.has_dra_by_hand:
        return manifest
    return re.sub(r"(- moorage-driver\n)( +- )(node|shared)\n", r"\1\2\3\n\2--path=dra\n", manifest)


def wait_rolled_out(cluster: Cluster) -> None:
    for workload in ("daemonset/moorage-driver-node", "deployment/moorage-driver-shared", HANDLERS):
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


LINKED = """
import asyncio
from driver.handlers.sdk import Device, DeviceSpec, Handler, Request, run

async def discover(request: Request):
    spec = DeviceSpec("/dev/linked", request.details.strip(), "rw")
    yield [Device("linked", {"UDEV_DEVNODE": "/dev/linked"}, device_specs=(spec,))]
    await asyncio.Event().wait()

run(Handler("linked", discover))
"""


def test_a_link_of_the_node_is_followed_into_a_container(pod_story: Story) -> None:
    """As those in /dev/serial/by-id; it comes after its handler has told of it."""
    disk = pod_story.plug("behind a link")
    links = Path("/dev") / pod_story.name / "by-id"
    handler = HandlerProcess(pod_story, LINKED)
    handler.start()
    try:
        configure(pod_story, pod_story.name, "linked", str(links / "disk"))
        pod_story.until(
            "the device is left out",
            lambda: "is not there." in str(pod_story.get("akric", pod_story.name).get("status")),
        )
        links.mkdir(parents=True)
        (links / "disk").symlink_to(f"../../{disk.name}")
        pod_story.wait_devices(1)
        pod_story.claim()
        pod_story.pod()
        pod_story.wait_running()
        assert pod_story.read().splitlines()[-1] == "behind a link"
    finally:
        handler.stop()
        shutil.rmtree(links.parent, ignore_errors=True)
        pod_story.delete("akric", pod_story.name)


@pytest.fixture
def handler_pods(pods: Cluster) -> Iterator[dict[str, str]]:
    """What Configurations ask our handlers for; another of opcua is asked over the network."""
    example = on_the_network(ROOT / "deploy/examples/handler-opcua-daemonset.yaml")
    pods.apply(example)
    yield HANDLER_DETAILS
    name, namespace = example["metadata"]["name"], example["metadata"]["namespace"]
    pods.kubectl("delete", "daemonset", name, "-n", namespace)


def on_the_network(path: Path) -> dict[str, Any]:
    """The handler of an example, as Akri runs its own: as root, at the socket that takes all."""
    body: dict[str, Any] = yaml.safe_load(path.read_text())
    pod = body["spec"]["template"]["spec"]
    (container,), (volume,) = pod["containers"], pod["volumes"]
    pod["securityContext"] = {"runAsUser": 0, "runAsGroup": 0}
    container["command"] = [part for part in container["command"] if "--folder" not in part]
    address = {"fieldRef": {"fieldPath": "status.podIP"}}
    container["env"] = [{"name": "POD_IP", "valueFrom": address}]
    container["volumeMounts"][0]["mountPath"] = volume["hostPath"]["path"] = "/var/lib/akri"
    return body


def figures(cluster: Cluster, component: str) -> Mapping[str, float]:
    """The figures of all pods of a component, added up.

    Both nodes are one machine with one port 8090: what one driver says is counted twice.
    """
    label = f"app.kubernetes.io/component={component}"
    found = cluster.kubectl("get", "pods", "-n", NAMESPACE, "-l", label, "-o", "name").stdout
    pages = (
        cluster.kubectl(
            "get", "--raw", f"/api/v1/namespaces/{NAMESPACE}/pods/{name}:8090/proxy/metrics"
        )
        for name in found.replace("pod/", "").split()
    )
    total: defaultdict[str, float] = defaultdict(float)
    for page in pages:
        for line in page.stdout.splitlines():
            figure, _, value = line.rpartition(" ")
            if not line.startswith("#"):
                total[figure] += float(value)
    return total


def test_pods_of_handlers_work_at_a_socket_and_over_the_network_and_figures_tell_it(
    pod_story: Story, handler_pods: dict[str, str]
) -> None:
    for name, details in handler_pods.items():
        configure(pod_story, f"{pod_story.name}-{name}", name, details)
    line = 'moorage_driver_discovery_handlers{{handler="{}",source="external",state="Active"}}'

    def active() -> bool:
        told = figures(pod_story.cluster, "node")
        onvif, opcua = (told[line.format(name)] for name in ("onvif", "opcua"))
        return opcua > onvif > 0

    pod_story.until("they are asked", active)
    told = figures(pod_story.cluster, "node")
    assert told['moorage_driver_passes_total{result="ok",work="publishing"}'] > 0
    assert told["process_resident_memory_bytes"] > 0
    pod_story.until(
        "one leads", lambda: figures(pod_story.cluster, "shared")["moorage_driver_leader"] == 1
    )


def configure(story: Story, name: str, handler: str, details: str) -> None:
    body = {
        "apiVersion": "akri.sh/v0",
        "kind": "Configuration",
        "metadata": {"name": name, "namespace": story.namespace},
        "spec": {"discoveryHandler": {"name": handler, "discoveryDetails": details}},
    }
    story.cluster.apply(body)


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
