"""The second half of the story: two queues, one claim, and who is charged for it."""

from __future__ import annotations

from moorage_demo import queues
from moorage_demo.scene import Scene

QUEUE_LABEL = "moorage.dev/queue"
CLASS = "disk"


class Sharing:
    """Tells whose claim it is, who else may use it, and who may not."""

    def __init__(self, scene: Scene) -> None:
        self._scene = scene

    def queues_are_made(self) -> None:
        self._scene.apply("queues.yaml")
        for name in ("research", "vision", "robots"):
            queues.show_accepted(self._scene, name)

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
        self._scene.row("released", "ResourceClaim my-disk", "not allocated, no owner")
        self._charged("vision", 0, owned=0, shared=0)

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
        self._scene.row("refused", f"Pod {pod}{what}", queues.refusal(self._scene, pod))
