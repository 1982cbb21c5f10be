"""The same on devices that exist: our driver prepares them, and containers run."""

from __future__ import annotations

import json
import secrets
from collections.abc import Iterator

import pytest
import yaml

from driver.api import NODE_LABEL
from tests.collector import Collector
from tests.e2e.driver import installation
from tests.e2e.driver.installation import Drivers
from tests.e2e.sharing import objects
from tests.e2e.sharing.objects import QUEUE
from tests.e2e.sharing.plugin import Plugin
from tests.e2e.sharing.stories import CLAIM, Story

NODE = "node-a"
HERE = objects.on(NODE)

# As a vendor's quickstart has it: no queue, no scheduler, nothing of ours.
THIRD_PARTY_CLAIM = """
apiVersion: resource.k8s.io/v1
kind: ResourceClaim
metadata: {name: one-disk}
spec: {devices: {requests: [{name: disk, exactly: {deviceClassName: disk.example.com}}]}}
"""

THIRD_PARTY_POD = """
apiVersion: v1
kind: Pod
metadata: {name: NAME, labels: {app: pod}}
spec:
  terminationGracePeriodSeconds: 0
  containers:
  - name: ctr
    image: moorage.test/busybox:local
    imagePullPolicy: Never
    command: [sh, -c, "env; sleep 9999"]
    resources: {claims: [{name: shared-disk}]}
  resourceClaims: [{name: shared-disk, resourceClaimName: one-disk}]
"""


def _elsewhere(story: Story) -> str | None:
    """The Instance that not `HERE`, but the other node has."""
    found = {
        i["metadata"]["labels"][NODE_LABEL]: i["metadata"]["name"] for i in story.all("instance")
    }
    return next((name for node, name in found.items() if node != NODE), None)


@pytest.fixture(scope="module")
def collector(plugin: Plugin) -> Iterator[Collector]:
    """Of traces."""
    with Collector.listening(plugin.cluster.host_address) as collector:
        yield collector


@pytest.fixture(scope="module")
def drivers(plugin: Plugin, collector: Collector) -> Iterator[Drivers]:
    flags = (f"--tracing-endpoint={collector.endpoint}", "--log-format=json")
    running = installation.start_processes(plugin.cluster, *flags)
    yield running
    running.stop()


@pytest.mark.usefixtures("disk")
def test_five_sharers_of_a_nodes_one_device_all_run_under_a_limit_of_one(story: Story) -> None:
    vision = story.queue("vision", limit=1)
    story.claim()
    pods = [f"sharer-{number}" for number in range(5)]

    for pod in pods:
        story.pod(pod, vision, **HERE)

    story.wait_running(*pods)
    assert {story.node_of(pod) for pod in pods} == {NODE}
    story.wait_figures({vision: 1})


@pytest.mark.usefixtures("disk")
def test_an_unmodified_manifest_of_two_pods_and_one_claim_is_owned_by_its_first_binder(
    story: Story,
) -> None:
    vendors = f"disk.example.com-{secrets.token_hex(2)}"
    vision, robots = story.queue("vision", limit=1), story.queue("robots", limit=1)
    ours = f'device.attributes["moorage.dev"].configuration == "{story.name}"'
    story.create("class", objects.device_class(vendors, "moorage.dev", only=ours))
    story.label_namespace({QUEUE: vision})
    story.send_to_scheduler()

    story.create("claim", yaml.safe_load(THIRD_PARTY_CLAIM.replace("disk.example.com", vendors)))
    for pod in ("one", "two"):
        story.create("pod", yaml.safe_load(THIRD_PARTY_POD.replace("NAME", pod)))

    story.wait_running("one", "two")
    assert story.owner("one-disk") == vision
    assert story.owner_pod("one-disk") in {story.uid("pod", pod) for pod in ("one", "two")}
    story.pod("foreign", robots, "one-disk")
    story.wait_running("foreign")
    story.wait_shared_out(vision)
    # The device is charged, whatever class asked for it.
    assert {queue: story.figure(queue) for queue in (vision, robots)} == {vision: 1, robots: 0}


@pytest.mark.usefixtures("disk")
def test_a_foreign_pod_runs_on_when_the_owners_is_evicted_and_the_owner_stays_charged(
    story: Story,
) -> None:
    vision, robots = story.queue("vision"), story.queue("robots")
    story.claim()
    story.pod("owner", vision)
    story.wait_running("owner")
    story.pod("foreign", robots)
    story.wait_running("foreign")

    story.evict("owner")

    story.until("one consumer is left", lambda: story.consumers() == ["foreign"])
    story.wait_figures({vision: 1, robots: 0})
    assert story.owner() == vision
    assert story.is_running("foreign")
    story.pod("back", vision)
    story.wait_running("back")
    story.wait_figures({vision: 1, robots: 0})


@pytest.mark.usefixtures("disk")
def test_a_container_that_ends_frees_the_claim_that_it_was_the_last_to_use(story: Story) -> None:
    vision, robots = story.queue("vision"), story.queue("robots")
    story.claim()
    story.pod("stays", vision)
    story.wait_running("stays")
    story.pod("ends", robots, command=["true"], restartPolicy="Never")

    story.until("it ended", lambda: story.get("pod", "ends")["status"]["phase"] == "Succeeded")
    story.until("one consumer is left", lambda: story.consumers() == ["stays"])
    story.wait_figures({vision: 1, robots: 0})
    assert story.is_running("stays")
    story.delete("pod", "stays")
    story.wait_owner("")
    story.wait_figures({vision: 0})
    assert not story.is_allocated(CLAIM)


@pytest.mark.usefixtures("disk")
def test_a_pod_written_for_the_device_plugin_is_charged_until_it_ends(story: Story) -> None:
    vision = story.queue("vision", limit=1)
    limits = {"limits": {f"akri.sh/{story.name}": "1"}}
    instance = story.until("its other Instance is there", lambda: _elsewhere(story))
    one_instance = {"limits": {f"akri.sh/{instance}": "1"}}
    story.until("its class is there", lambda: story.find("class", instance))
    ending = {"command": ["sh", "-c", "until test -e /tmp/end; do sleep 0.1; done"]}
    story.plain_pod("first", vision, resources=limits, restartPolicy="Never", **ending, **HERE)
    story.wait_running("first")
    story.wait_figures({vision: 1})
    story.plain_pod("second", vision, resources=one_instance)
    story.wait_refused("second", "OverLimit")

    story.cluster.kubectl("exec", "-n", story.namespace, "first", "--", "touch", "/tmp/end")

    story.wait_bound("second")
    story.wait_figures({vision: 1})


@pytest.mark.usefixtures("disk")
def test_a_device_is_taken_back_from_all_who_run_on_it_and_who_waited_runs(story: Story) -> None:
    """The other node has a device that is free, and that does not serve."""
    mine, robots = story.queue("mine", quota=1), story.queue("robots", quota=0)
    others = story.queue("others")
    story.claim("held")
    story.pod("owner", robots, "held", **HERE)
    story.wait_running("owner")
    story.pod("foreign", others, "held", **HERE)
    story.wait_running("foreign")

    story.claim("w")
    story.pod("w", mine, "w", **HERE)

    story.wait_running("w")
    assert story.bound() == {"w"}
    why = story.wait_told("foreign", "Reclaimed")
    assert "is given up by all its users (2 pods)" in why
    assert why.endswith(f'on node "{NODE}".')
    assert story.wait_told("owner", "Reclaimed") == why
    story.wait_figures({mine: 1, robots: 0})


@pytest.mark.usefixtures("disk")
def test_one_uid_finds_what_was_done_for_a_pod_in_logs_and_traces(
    story: Story, drivers: Drivers, collector: Collector
) -> None:
    vision = story.queue("vision")
    story.claim()
    tracing = f"--tracing-endpoint={collector.endpoint}"
    with story.plugin.started_with(tracing, "--log-level=DEBUG", "--log-format=json"):
        story.pod("reader", vision, **HERE)
        story.wait_running("reader")
        pod, claim = story.uid("pod", "reader"), story.uid("claim", CLAIM)
        texts = (story.plugin.handle.logs(), drivers.nodes[NODE].logs())

    # The kubelet may ask to prepare before the plugin has said that it bound the pod.
    said = [line for text in texts for line in text.splitlines() if pod in line]
    lines = [json.loads(line) for line in said]
    # Its Queue's finalizer is written by its Bind, or a moment before by who keeps the queues.
    lines = [line for line in lines if not line["message"].startswith("finalizer ")]
    messages = [line["message"].partition(" ")[0] for line in lines]
    assert messages == ["Filter:", "bound", "Bind:", "Prepared"]
    assert {line["podUID"] for line in lines[:3]} == {lines[3]["podUIDs"]} == {pod}
    assert (lines[1]["claimUIDs"], lines[3]["claimUID"]) == (claim, claim)
    trace = pod.replace("-", "")
    story.until(
        "its trace is whole",
        lambda: (
            {span.name for span in collector.spans if span.trace_id.hex() == trace}
            == {"Filter", "Bind", "NodePrepareResources"}
        ),
    )
