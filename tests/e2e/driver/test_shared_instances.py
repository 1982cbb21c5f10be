"""One device, several nodes: who holds its Instance, and what is left of nodes that are lost."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

from driver.api import NodeName
from driver.devices import device_hash
from local_cluster.api import Cluster
from tests.driver.colliding_devices import COLLIDING, colliding
from tests.e2e.driver.installation import DEBUG_ECHO_FILE, NODES
from tests.e2e.driver.lost_nodes import enter_as_akri
from tests.e2e.driver.stories import Story

OFFLINE_SINCE = "moorage.dev/offline-since"


@pytest.fixture(autouse=True)
def everything_back(cluster: Cluster) -> Iterator[None]:
    """No node is left without its debugEcho devices."""
    yield
    for node in NODES:
        say(cluster, node, "ONLINE")


def say(cluster: Cluster, node: str, word: str) -> None:
    """Take a node's debugEcho devices away, or bring them back."""
    cluster.node(node).path(DEBUG_ECHO_FILE).write_text(word)


def configure(story: Story, name: str, *ids: str, shared: bool = True, **spec: Any) -> None:
    details = json.dumps({"descriptions": ids or [story.name], "shared": shared})
    handler = {"name": "debugEcho", "discoveryDetails": details}
    body = {
        "apiVersion": "akri.sh/v0",
        "kind": "Configuration",
        "metadata": {"name": name, "namespace": story.namespace},
        "spec": {"discoveryHandler": handler, **spec},
    }
    story.cluster.apply(body)


def of(story: Story, name: str) -> list[dict[str, Any]]:
    """The Instances of a Configuration."""
    return [i for i in story.instances() if i["spec"]["configurationName"] == name]


def wait_nodes(story: Story, name: str, *nodes: str) -> dict[str, Any]:
    """Wait until these nodes and no others see the one Instance of a Configuration."""

    def seen() -> dict[str, Any] | None:
        found = of(story, name)
        if len(found) == 1 and sorted(found[0]["spec"].get("nodes", ())) == sorted(nodes):
            return found[0]
        return None

    return story.until(f"the Instance of {name} is on {nodes}", seen)


def use(story: Story, instance: dict[str, Any], slot: int, value: str | None) -> None:
    """Write a slot as an administrator would."""
    name = instance["metadata"]["name"]
    usage = json.dumps({"spec": {"deviceUsage": {f"{name}-{slot}": value}}})
    where = ("instance", name, "--namespace", story.namespace)
    story.cluster.kubectl("patch", *where, "--type=merge", "-p", usage)


def test_nodes_that_see_one_device_hold_one_instance_and_each_its_own_otherwise(
    story: Story, lost_node: str
) -> None:
    local = f"{story.name}-local"
    configure(story, story.name, capacity=2, brokerProperties={"FLOOR": "1"})
    configure(story, local, shared=False)

    instance = wait_nodes(story, story.name, *NODES)
    story.until("each node has its own", lambda: len(of(story, local)) == 2)

    assert instance["metadata"]["labels"] == {"moorage.dev/node": ""}
    assert instance["spec"]["shared"] is True
    assert {tuple(i["spec"]["nodes"]) for i in of(story, local)} == {("node-a",), ("node-b",)}
    assert not any(map(story.devices, NODES)), "no node publishes for itself what others have, too"

    use(story, instance, 1, lost_node)
    configure(story, story.name, capacity=3)

    def changed() -> bool:
        return bool(wait_nodes(story, story.name, *NODES)["spec"]["capacity"] == 3)

    story.until("the first by name writes the body", changed)
    after = wait_nodes(story, story.name, *NODES)
    assert after["spec"]["brokerProperties"] == {"DEBUG_ECHO_DESCRIPTION": story.name}
    assert after["spec"]["deviceUsage"] == {f"{after['metadata']['name']}-1": lost_node}

    enter_as_akri(story.cluster, instance, lost_node)
    wait_nodes(story, story.name, *NODES, lost_node)
    story.cluster.kubectl("delete", "node", lost_node)
    left = wait_nodes(story, story.name, *NODES)
    assert left["spec"]["deviceUsage"] == {}, "slots are released before the entry is"


def test_an_instance_goes_when_no_node_sees_it_or_uses_it(story: Story, lost_node: str) -> None:
    cluster = story.cluster
    configure(story, story.name, offlineGracePeriod="1s")
    before = wait_nodes(story, story.name, *NODES)
    use(story, before, 0, f"C:{before['metadata']['name']}:{lost_node}")
    enter_as_akri(story.cluster, before, "node-b")

    say(cluster, "node-b", "OFFLINE")
    alone = wait_nodes(story, story.name, "node-a")
    assert alone["metadata"]["uid"] == before["metadata"]["uid"]

    story.drivers.nodes["node-a"].kill()
    say(cluster, "node-a", "OFFLINE")
    wait_nodes(story, story.name)
    story.until("it is marked", lambda: OFFLINE_SINCE in _annotations(story))
    assert of(story, story.name)[0]["metadata"]["uid"] == before["metadata"]["uid"]

    say(cluster, "node-b", "ONLINE")
    wait_nodes(story, story.name, "node-b")
    story.until("the mark is gone", lambda: OFFLINE_SINCE not in _annotations(story))
    say(cluster, "node-b", "OFFLINE")
    wait_nodes(story, story.name)
    cluster.kubectl("delete", "node", lost_node)

    story.until("it is gone", lambda: not of(story, story.name))
    note = f"Node {lost_node} does not exist: it holds {before['metadata']['name']}-0 no longer."
    story.until("an Event tells of the slot", lambda: note in _notes(story))
    for node in NODES:
        say(cluster, node, "ONLINE")
    assert wait_nodes(story, story.name, *NODES)["metadata"]["uid"] != before["metadata"]["uid"]


def test_of_devices_of_one_hash_one_is_an_instance_and_the_status_tells(story: Story) -> None:
    local = f"{story.name}-local"
    first, second = sorted(COLLIDING)
    configure(story, story.name, first, second, offlineGracePeriod="1s")
    configure(story, local, *colliding(NodeName("node-a"), NodeName("node-b")), shared=False)

    before = wait_nodes(story, story.name, *NODES)
    assert _description(before) == first
    assert before["metadata"]["name"] == f"{story.name}-{device_hash(first, None)}"
    told = f'of hash has the name: "{second}" ({before["metadata"]["name"]}). Set'
    story.until("the status tells of it", lambda: told in _messages(story))
    story.until("three of the four are there", lambda: len(of(story, local)) == 3)

    configure(story, story.name, second, offlineGracePeriod="1s")
    story.until("the first is gone", lambda: _descriptions(story) == [second])
    after = wait_nodes(story, story.name, *NODES)
    assert after["metadata"]["name"] == before["metadata"]["name"]
    story.until("nothing is told any more", lambda: told not in _messages(story))


def _descriptions(story: Story) -> list[str]:
    return [_description(instance) for instance in of(story, story.name)]


def _description(instance: dict[str, Any]) -> str:
    description: str = instance["spec"]["brokerProperties"]["DEBUG_ECHO_DESCRIPTION"]
    return description


def _messages(story: Story) -> str:
    status = story.get("akric", story.name).get("status", {})
    return " ".join(entry.get("message", "") for entry in status.get("nodes", ()))


def _annotations(story: Story) -> dict[str, str]:
    (instance,) = of(story, story.name)
    found: dict[str, str] = instance["metadata"].get("annotations", {})
    return found


def _notes(story: Story) -> list[str]:
    events = story.cluster.list("events.events.k8s.io", namespace=story.namespace)
    return [e.get("note", "") for e in events if e["reason"] == "SlotsReleased"]
