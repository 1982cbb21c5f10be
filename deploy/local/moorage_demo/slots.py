"""The story without DRA: one camera, two nodes, three slots, and two queues that use them."""

from __future__ import annotations

import time

from moorage_demo import queues
from moorage_demo.scene import Object, Scene

CAMERA = "camera"
DOOR = "camera-317a9c"
PREFIX = "akri.sh/"
FOLDER = "legacy"


class SlotStory:
    """Tells of one camera that pods of both nodes share through the device plugin."""

    def __init__(self, scene: Scene) -> None:
        self._scene = scene
        self._usage: dict[str, str] = {}

    def tell(self) -> str:
        """Returns what it comes to."""
        self._discovered()
        self._scene.apply(f"{FOLDER}/queues.yaml")
        for name in ("research", "vision", "robots"):
            queues.show_accepted(self._scene, name)
        self._runs("viewer-a", f"asks for any {CAMERA}")
        self._runs("viewer-b", f"asks for any {CAMERA}")
        self._is_refused("third", "of queue vision")
        self._runs("recorder", f"asks for {DOOR}")
        self._charged({"vision": 2, "robots": 1, "research": 3})
        self._waits_for_a_slot("patient")
        freed = self._freed("viewer-a")
        self._is_running("patient", "has waited for it")
        self._charged({"vision": 1, "robots": 2, "research": 3})
        self._all_end()
        return f"pods of two nodes shared one camera, and a slot was free {freed} after its pod"

    def _discovered(self) -> None:
        self._scene.apply(f"{FOLDER}/configuration.yaml")
        instance = self._scene.until("there is an Instance", self._seen_by_all)
        spec = instance["spec"]
        nodes = ", ".join(sorted(spec["nodes"]))
        self._scene.row("Instance", DOOR, f"on {nodes}: {spec['capacity']} slots for all of them")
        for node in self._scene.cluster.nodes:
            expected = {CAMERA: 1, DOOR: 3}
            self._offers(node.name, expected)

    def _seen_by_all(self) -> Object | None:
        instance = self._scene.get("akrii", DOOR)
        seen = len(instance["spec"]["nodes"]) if instance else 0
        return instance if seen == len(self._scene.cluster.nodes) else None

    def _offers(self, node: str, expected: dict[str, int]) -> None:
        """Wait until the node's kubelet says so."""
        what = f"{node} offers {expected}"
        self._scene.until(what, lambda: self._allocatable(node) == expected)
        shown = ", ".join(f"{PREFIX}{name}: {amount}" for name, amount in expected.items())
        self._scene.row("Node", node, f"offers {shown}")

    def _allocatable(self, node: str) -> dict[str, int]:
        amounts = (self._scene.get("node", node) or {})["status"]["allocatable"]
        return {name: int(amounts.get(f"{PREFIX}{name}", -1)) for name in (CAMERA, DOOR)}

    def _runs(self, pod: str, what: str) -> None:
        self._scene.apply(f"{FOLDER}/{pod}.yaml")
        self._is_running(pod, what)

    def _is_running(self, pod: str, what: str) -> None:
        self._scene.until_ready(pod)
        spec = (self._scene.get("pod", pod) or {})["spec"]
        seen = self._scene.until("it has told", lambda: self._log(pod))
        self._scene.row("Pod", f"{pod} on {spec['nodeName']}", what, f"sees {seen}")
        self._scene.until("the slots have changed", lambda: self._slots() != self._usage)
        self._show_usage()

    def _log(self, pod: str) -> str:
        lines = self._scene.cluster.kubectl("logs", pod).stdout.splitlines()
        plain = ("DEBUG_ECHO_DESCRIPTION=", "FLOOR=")
        return ", ".join(line for line in lines if line.startswith(plain))

    def _slots(self) -> dict[str, str]:
        found: dict[str, str] = (self._scene.get("akrii", DOOR) or {})["spec"].get(
            "deviceUsage", {}
        )
        return {slot: holder for slot, holder in sorted(found.items()) if holder}

    def _show_usage(self) -> None:
        self._usage = self._slots()
        shown = [f"{slot}: {holder}" for slot, holder in self._usage.items()]
        self._scene.row("deviceUsage", f"Instance {DOOR}", *(shown or ["all slots are free"]))

    def _is_refused(self, pod: str, what: str) -> None:
        self._scene.apply(f"{FOLDER}/{pod}.yaml")
        sentence = queues.refusal(self._scene, pod)
        self._scene.row("refused", f"Pod {pod} {what}", sentence)
        self._scene.delete_pods(pod)

    def _waits_for_a_slot(self, pod: str) -> None:
        """Once its node has said that there is none left."""
        self._offers("node-a", {CAMERA: 1, DOOR: 0})
        self._scene.apply(f"{FOLDER}/{pod}.yaml")
        sentence = queues.refusal(self._scene, pod)
        self._scene.row("waits", f"Pod {pod}", sentence.partition(" preemption:")[0])

    def _freed(self, pod: str) -> str:
        """Delete a pod; returns how long its slot was still held."""
        (slot,) = (s for s, holder in self._usage.items() if holder.endswith(":node-a"))
        self._scene.delete_pods(pod)
        start = time.monotonic()
        # Not that it is absent: who waits for it may have it again by then.
        holder = self._usage[slot]
        self._scene.until("its slot is free", lambda: self._slots().get(slot) != holder)
        seconds = f"{time.monotonic() - start:.1f} s"
        self._scene.row("released", f"Pod {pod} is gone", f"its slot is free after {seconds}")
        self._usage = {s: h for s, h in self._usage.items() if s != slot}
        return seconds

    def _charged(self, expected: dict[str, int]) -> None:
        for name, amount in expected.items():
            queues.until_charged(self._scene, name, {CAMERA: amount})
        shown = ", ".join(f"{name} {amount}" for name, amount in expected.items())
        self._scene.row("status", "Queues", f"usage {CAMERA}: {shown}")

    def _all_end(self) -> None:
        self._scene.delete_pods("viewer-b", "recorder", "patient")
        self._scene.until("all slots are free", lambda: not self._slots())
        self._show_usage()
        self._charged({"vision": 0, "robots": 0, "research": 0})
