"""Devices that debugEcho shares between all nodes, and what is published of them."""

from __future__ import annotations

import json
from typing import Any

from local_cluster.api import Cluster
from tests.e2e.driver.installation import DEBUG_ECHO_FILE, NODES
from tests.e2e.driver.stories import Story

OFFLINE = "moorage.dev/offline"


def say(cluster: Cluster, word: str) -> None:
    """Take the debugEcho devices of all nodes away, or bring them back."""
    for node in NODES:
        cluster.node(node).path(DEBUG_ECHO_FILE).write_text(word)


def configure(story: Story, **spec: Any) -> None:
    details = json.dumps({"descriptions": [story.name], "shared": True})
    handler = {"name": "debugEcho", "discoveryDetails": details}
    body = {
        "apiVersion": "akri.sh/v0",
        "kind": "Configuration",
        "metadata": {"name": story.name, "namespace": story.namespace},
        "spec": {"discoveryHandler": handler, **spec},
    }
    story.cluster.apply(body)


def slices(story: Story) -> list[dict[str, Any]]:
    """The slices of this story's pool."""
    pool = f"shared/{story.name}"
    found = story.cluster.list("resourceslices")
    return [s for s in found if s["spec"]["pool"]["name"] == pool]


def hosts(slice_: dict[str, Any]) -> list[str]:
    """Whom a slice is for."""
    (term,) = slice_["spec"]["nodeSelector"]["nodeSelectorTerms"]
    (requirement,) = term["matchExpressions"]
    assert (requirement["key"], requirement["operator"]) == ("kubernetes.io/hostname", "In")
    values: list[str] = requirement["values"]
    return values


def seen_by(story: Story) -> list[str]:
    """The nodes for which the story's shared devices are published."""
    return sorted({host for slice_ in slices(story) for host in hosts(slice_)})


def wait_published(story: Story) -> dict[str, Any]:
    """Wait until the story's device is there for all nodes, and give it."""

    def published() -> dict[str, Any] | None:
        found = slices(story)
        if len(found) != 1 or hosts(found[0]) != list(NODES):
            return None
        (device,) = found[0]["spec"]["devices"]
        return None if device.get("taints") else dict(device)

    return story.until("the device is published for all nodes", published)


def taints(story: Story) -> list[str]:
    return [
        t["key"] for s in slices(story) for d in s["spec"]["devices"] for t in d.get("taints", ())
    ]


def is_waiting(story: Story, pod: str) -> bool:
    """Whether the scheduler found no place for it."""
    conditions = story.get("pod", pod).get("status", {}).get("conditions", ())
    return any(c["type"] == "PodScheduled" and c["status"] == "False" for c in conditions)
