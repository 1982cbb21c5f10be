"""What people and programs are told of prepared devices: on claims, and in containers."""

from __future__ import annotations

import json
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any

from driver.api import DRIVER_NAME
from driver.preparing.kubelet_health import LIMIT_SECONDS
from local_cluster.component_handles import ComponentProcess
from local_cluster.loop_devices import LoopDevice
from tests.e2e.driver.echoes import configure as configure_echo
from tests.e2e.driver.echoes import wait_published
from tests.e2e.driver.installation import NODES
from tests.e2e.driver.stories import Story


def devices(story: Story, claim: str = "disk") -> list[dict[str, Any]]:
    """What the status of a claim says of its devices."""
    found: list[dict[str, Any]] = story.get("resourceclaim", claim)["status"].get("devices", [])
    return found


def test_a_claim_says_what_was_prepared_until_it_is_deallocated(story: Story) -> None:
    disk = story.plug()
    story.configure(brokerProperties={"UDEV_FLOOR": "2"})
    story.claim()
    story.pod()
    story.wait_running()

    (device,) = story.until("the claim is told", lambda: devices(story))

    status = story.get("resourceclaim", "disk")["status"]
    (result,) = status["allocation"]["devices"]["results"]
    assert {k: device[k] for k in ("driver", "pool", "device")} == {
        k: result[k] for k in ("driver", "pool", "device")
    }
    path = f"/devices/virtual/block/{disk.name}"
    assert device["data"]["deviceNodes"] == [f"/dev/{disk.name}"]
    assert device["data"]["properties"] == {
        "UDEV_DEVNODE": f"/dev/{disk.name}",
        "UDEV_DEVPATH": path,
        "UDEV_FLOOR": "2",
    }
    story.delete("pod", "reader")
    story.until(
        "the claim is deallocated",
        lambda: "allocation" not in story.get("resourceclaim", "disk").get("status", {}),
    )
    assert "devices" not in story.get("resourceclaim", "disk")["status"]


def ready(story: Story) -> dict[str, str]:
    """The condition of the claim's device."""
    (device,) = devices(story) or [{}]
    found = (one for one in device.get("conditions", ()) if one["type"] == "Ready")
    return dict(next(found, {}))


def ready_reader(story: Story) -> LoopDevice:
    """A pod with a disk, whose claim says that it is ready."""
    disk = story.plug()
    story.configure(offlineGracePeriod="1h")
    story.claim()
    story.pod(node="node-a")
    story.wait_running()
    story.until("it is ready", lambda: ready(story).get("status") == "True")
    return disk


def test_a_claim_says_whether_its_device_is_ready_and_since_when(story: Story) -> None:
    """Beside the conditions of others, which stay."""
    disk = ready_reader(story)
    before = ready(story)
    assert (before["type"], before["reason"]) == ("Ready", "Prepared")
    others = {**before, "type": "Dusted", "reason": "Cleaned"}
    change = [{"op": "add", "path": "/status/devices/0/conditions/-", "value": others}]
    patch = ("patch", "resourceclaim", "disk", "-n", story.namespace, "--subresource=status")
    story.cluster.kubectl(*patch, "--type=json", f"--patch={json.dumps(change)}")

    disk.detach()
    story.until("it is not", lambda: ready(story)["status"] == "False")
    gone = ready(story)
    said = "On node node-a: the device is offline."
    assert (gone["reason"], gone["message"]) == ("Offline", said)
    assert gone["lastTransitionTime"] > before["lastTransitionTime"]
    disk.attach(story.folder / disk.name)
    # As docs/what-containers-find.md waits for it.
    path = '{.status.devices[0].conditions[?(@.type=="Ready")].status}'
    waited = f"jsonpath={path}=True"
    story.cluster.wait("resourceclaim/disk", waited, namespace=story.namespace, seconds=60)

    (device,) = devices(story)
    assert others in device["conditions"]


def test_a_driver_that_restarts_tells_claims_nothing_that_they_know(story: Story) -> None:
    ready_reader(story)
    before = story.get("resourceclaim", "disk")["metadata"]["resourceVersion"]
    driver = story.drivers.nodes["node-a"]

    driver.kill()
    driver.wait_ready()
    # The claim is told of this one after the passes of the new driver's start.
    story.plug()
    story.claim("second")
    story.pod("second", claim="second", node="node-a")
    story.until("another claim is told", lambda: devices(story, "second"))

    assert before == story.get("resourceclaim", "disk")["metadata"]["resourceVersion"]


def test_a_device_on_the_network_says_where_whichever_node_prepares_it(story: Story) -> None:
    address = {"CAMERA_URL": "rtsp://192.0.2.7:554/live"}
    configure_echo(story, capacity=2, brokerProperties=address)
    wait_published(story)
    for node in NODES:
        story.claim(f"camera-{node}")
        command = ["sh", "-c", "env | grep CAMERA; exec sleep 100000"]
        story.pod(node, claim=f"camera-{node}", node=node, container={"command": command})

    for node in NODES:
        story.wait_running(node)
        (device,) = story.until("its claim is told", partial(devices, story, f"camera-{node}"))
        assert device["networkData"] == {"ips": ["192.0.2.7/32"]}
        assert device["shareID"]


READ_METADATA = (
    "cd /var/run/kubernetes.io/dra-device-attributes; find . -type f; "
    "cat $(find . -type f); exec sleep 100000"
)


def reading(story: Story, name: str, **options: Any) -> tuple[str, list[dict[str, Any]]]:
    """Where a container finds the metadata of its device, and what it says in each version."""
    security = {"runAsUser": 65534, "allowPrivilegeEscalation": False}
    container = {"command": ["sh", "-c", READ_METADATA], "securityContext": security}
    story.pod(name, container=container, **options)
    story.wait_running(name)
    path, text = story.read(name).split("\n", 1)
    decoder, documents = json.JSONDecoder(), []
    while text := text.strip():
        document, end = decoder.raw_decode(text)
        documents.append(document)
        text = text[end:]
    return path, documents


def test_a_container_reads_the_attributes_of_its_device(story: Story) -> None:
    story.plug()
    story.configure(attributes={"floor": {"int": 3}})
    (published,) = story.wait_devices(1)
    story.claim()

    path, documents = reading(story, "reader", node="node-a")

    assert path == "./resourceclaims/disk/disk/moorage.dev-metadata.json"
    versions = [d["apiVersion"].rpartition("/")[2] for d in documents]
    assert versions == ["v1beta1", "v1alpha1"]
    for document in documents:
        assert document["metadata"]["uid"] == story.claim_uid()
        (request,) = document["requests"]
        (device,) = request["devices"]
        assert (request["name"], device["name"]) == ("disk", published["name"])
        assert device["attributes"] == published["attributes"]


def test_a_claim_of_a_template_is_read_under_the_name_in_the_pod(story: Story) -> None:
    story.plug()
    story.configure()
    requests = [{"name": "disk", "exactly": {"deviceClassName": story.name}}]
    template = {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceClaimTemplate",
        "metadata": {"name": "disks"},
        "spec": {"spec": {"devices": {"requests": requests}}},
    }
    story.cluster.apply(template, namespace=story.namespace)
    named = [{"name": "disk", "resourceClaimTemplateName": "disks"}]

    path, documents = reading(story, "reader", spec={"resourceClaims": named})

    assert path == "./resourceclaimtemplates/disk/disk/moorage.dev-metadata.json"
    assert documents[0]["podClaimName"] == "disk"


def test_a_pod_written_for_the_device_plugin_has_metadata_too(story: Story) -> None:
    story.plug()
    story.configure()
    limits = {f"akri.sh/{story.name}": "1"}
    command = ["sh", "-c", READ_METADATA]

    story.pod(
        container={"resources": {"limits": limits}, "command": command},
        spec={"resourceClaims": None},
    )

    story.wait_running()
    assert "/moorage.dev-metadata.json\n" in story.read()


def test_the_status_of_a_pod_says_that_its_device_was_unplugged_and_is_back(story: Story) -> None:
    """Through a restart of the driver, too: the kubelet watches the next one."""
    disk = story.plug()
    story.configure(offlineGracePeriod="1h")
    story.claim()
    story.pod(node="node-a")
    story.wait_running()
    story.until("it is well", lambda: health(story) == [("Healthy", None)])

    disk.detach()
    gone = ("Unhealthy", "the device is offline")
    story.until("it is away", lambda: health(story) == [gone])

    story.drivers.nodes["node-a"].kill()
    story.drivers.nodes["node-a"].wait_ready()
    disk.attach(story.folder / disk.name)
    story.until("it is back", lambda: health(story) == [("Healthy", None)])


def health(story: Story) -> list[tuple[str, str | None]]:
    """Of the devices of the reader's container: how it is, and why."""
    (status,) = story.get("pod", "reader")["status"]["containerStatuses"]
    found = status.get("allocatedResourcesStatus", ())
    each = [one for resource in found for one in resource["resources"]]
    return [(one["health"], one.get("message") or None) for one in each]


def test_the_kubelet_knows_how_long_the_health_of_a_device_counts(story: Story) -> None:
    """A driver that repeats it in time keeps it; of one that stands still it becomes unknown."""
    story.plug()
    story.configure()
    story.claim()
    story.pod(node="node-a")
    story.wait_running()
    story.until("it is well", lambda: health(story) == [("Healthy", None)])

    kept = kept_health(story)
    assert (kept["Health"], kept["HealthCheckTimeout"]) == ("Healthy", LIMIT_SECONDS * 10**9)
    with standing_still(story):
        story.until("it is unknown", lambda: health(story) == [("Unknown", None)], seconds=90)
    story.until("it is well again", lambda: health(story) == [("Healthy", None)])


def kept_health(story: Story) -> dict[str, Any]:
    """What node-a's kubelet keeps of the health of the claim's device."""
    path = story.cluster.node("node-a").kubelet_root / "dra_health_state"
    (result,) = story.get("resourceclaim", "disk")["status"]["allocation"]["devices"]["results"]
    kept = json.loads(path.read_text())[DRIVER_NAME]["Devices"]
    found: dict[str, Any] = kept[f"{result['pool']}/{result['device']}"]
    return found


@contextmanager
def standing_still(story: Story) -> Iterator[None]:
    """The driver of node-a keeps its connections meanwhile, and sends nothing."""
    driver = story.drivers.nodes["node-a"]
    assert isinstance(driver, ComponentProcess)
    driver.signal(signal.SIGSTOP)
    try:
        yield
    finally:
        driver.signal(signal.SIGCONT)
