"""What both stories show of queues: that they are accepted, what is charged, who is refused."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

from moorage_demo.scene import Object, Scene

# What kube-scheduler itself says of the nodes that it did not ask the plugin about.
OTHER_REASONS = (
    "cannot allocate all claims|resourceclaim not available on the node|Insufficient akri"
    "|node\\(s\\) didn't match"
)


def show_accepted(scene: Scene, name: str) -> None:
    """Wait until the scheduler plugin has taken a Queue, and show its limits."""
    spec = scene.until(f"Queue {name} is accepted", lambda: _accepted_spec(scene, name))
    limits = [f"limit {given['limit']}" for given in spec.get("resources", ())]
    below = [f"below {spec['parent']}"] if "parent" in spec else []
    shown = ", ".join([*below, *(limits or ["no limit of its own"])])
    scene.row("Queue", name, f"Accepted: {shown}")


def until_charged(scene: Scene, name: str, usage: Mapping[str, int]) -> None:
    """Wait until a Queue's status shows this usage."""
    scene.until(f"{name} is charged {usage}", lambda: _usage(scene, name, usage) == usage)


def refusal(scene: Scene, pod: str) -> str:
    """Wait until a pod is refused; the plugin's sentence, out of kube-scheduler's."""
    return scene.until(f"{pod} is refused", lambda: _refusal(scene.get("pod", pod) or {}))


def _accepted_spec(scene: Scene, name: str) -> Object | None:
    queue = scene.get("queue", name) or {}
    conditions = queue.get("status", {}).get("conditions", ())
    accepted = any(c["type"] == "Accepted" and c["status"] == "True" for c in conditions)
    return queue["spec"] if accepted else None


def _usage(scene: Scene, name: str, keys: Iterable[str]) -> dict[str, int]:
    found = (scene.get("queue", name) or {}).get("status", {}).get("usage", {})
    return {key: found.get(key, 0) for key in keys}


def _refusal(pod: Object) -> str | None:
    for condition in pod.get("status", {}).get("conditions", ()):
        if condition["type"] == "PodScheduled" and condition["status"] == "False":
            return sentence_in(condition["message"])
    return None


def sentence_in(message: str) -> str:
    """Of `0/2 nodes are available: 1 OverLimit: ..., 1 cannot allocate. preemption: ...`, ours."""
    found = re.search(rf" \d+ ([A-Z]\w+: .+?)(?=, \d+ (?:{OTHER_REASONS})|\.( |$))", message)
    return f"{found.group(1)}." if found else message
