"""The second half of the story: two queues, one claim, and who is charged for it."""

from __future__ import annotations

import re

from moorage_demo.scene import Object, Scene

QUEUE_LABEL = "moorage.dev/queue"
CLASS = "disk"
# What kube-scheduler itself says of the nodes that it did not ask the plugin about.
OTHER_REASONS = "cannot allocate all claims|resourceclaim not available on the node"


class Sharing:
    """Tells whose claim it is, who else may use it, and who may not."""

    def __init__(self, scene: Scene) -> None:
        self._scene = scene

    def queues_are_made(self) -> None:
        self._scene.apply("queues.yaml")
        for name in ("research", "vision", "robots"):
            self._is_accepted(name)

    def vision_owns(self) -> None:
        """After a pod of vision was bound first."""
        label = self._scene.until("the claim has an owner", self._owner)
        self._scene.row("owner", "ResourceClaim my-disk", f"{QUEUE_LABEL}: {label}")

    def robots_share(self) -> None:
        self._scene.apply("guest.yaml")
        self._scene.until_ready("guest")
        count = self._scene.until("both pods are on the claim", self._two_consumers)
        self._scene.row("Pod", "guest of queue robots", f"on the same claim: {count} pods share it")
        self._charged("robots", 0, owned=0, shared=0)
        self._charged("vision", 1, owned=1, shared=1)
        self._charged("research", 1, owned=0, shared=0)

    def others_are_refused(self) -> None:
        self._refused("stayer.yaml", "stayer", ", non-preemptible")
        self._refused("second.yaml", "second", ", its own claim")
        self._scene.apply("vision-alone.yaml")
        self._scene.row("opt-out", "Queue vision", "claimSharing: {policy: Deny}")
        self._refused("latecomer.yaml", "latecomer")

    def all_is_given_back(self) -> None:
        """After the last pod on the claim is gone."""
        self._scene.until("the claim has no owner", lambda: self._owner() is None)
        self._scene.row("released", "ResourceClaim my-disk", "not allocated, and nobody's")
        self._charged("vision", 0, owned=0, shared=0)

    def _is_accepted(self, name: str) -> None:
        spec = self._scene.until(f"Queue {name} is accepted", lambda: self._accepted_spec(name))
        limits = [f"limit {given['limit']}" for given in spec.get("resources", ())]
        below = [f"below {spec['parent']}"] if "parent" in spec else []
        shown = ", ".join([*below, *(limits or ["no limit of its own"])])
        self._scene.row("Queue", name, f"Accepted: {shown}")

    def _accepted_spec(self, name: str) -> Object | None:
        queue = self._scene.get("queue", name) or {}
        conditions = queue.get("status", {}).get("conditions", ())
        accepted = any(c["type"] == "Accepted" and c["status"] == "True" for c in conditions)
        return queue["spec"] if accepted else None

    def _owner(self) -> str | None:
        labels = (self._scene.get("resourceclaim", "my-disk") or {})["metadata"].get("labels", {})
        owner: str | None = labels.get(QUEUE_LABEL)
        return owner

    def _two_consumers(self) -> int | None:
        claim = self._scene.get("resourceclaim", "my-disk") or {}
        consumers = len(claim.get("status", {}).get("reservedFor", ()))
        return consumers if consumers > 1 else None

    def _charged(self, name: str, usage: int, *, owned: int, shared: int) -> None:
        expected = (usage, owned, shared)
        self._scene.until(f"{name} is charged {usage}", lambda: self._figures(name) == expected)
        shown = f"usage {CLASS}: {usage}, claims owned: {owned}, of these shared: {shared}"
        self._scene.row("status", f"Queue {name}", shown)

    def _figures(self, name: str) -> tuple[int, int, int]:
        """Usage, owned claims, claims that other queues' pods use."""
        status = (self._scene.get("queue", name) or {}).get("status", {})
        claims = status.get("claims", {})
        usage = status.get("usage", {}).get(CLASS, 0)
        return usage, claims.get("owned", 0), claims.get("sharedOut", 0)

    def _refused(self, file: str, pod: str, what: str = "") -> None:
        self._scene.apply(file)
        message = self._scene.until(f"{pod} is refused", lambda: _refusal(self._pod(pod)))
        self._scene.row("refused", f"Pod {pod}{what}", message)

    def _pod(self, name: str) -> Object:
        return self._scene.get("pod", name) or {}


def _refusal(pod: Object) -> str | None:
    """What the plugin said, out of kube-scheduler's sentence about all nodes and preemption."""
    for condition in pod.get("status", {}).get("conditions", ()):
        if condition["type"] == "PodScheduled" and condition["status"] == "False":
            return sentence_in(condition["message"])
    return None


def sentence_in(message: str) -> str:
    """Of `0/2 nodes are available: 1 OverLimit: ..., 1 cannot allocate. preemption: ...`, ours."""
    found = re.search(rf" \d+ ([A-Z]\w+: .+?)(?=, \d+ (?:{OTHER_REASONS})|\.( |$))", message)
    return f"{found.group(1)}." if found else message
