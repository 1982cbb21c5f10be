"""What a story is told with in which the drivers of both nodes take another path."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

from local_cluster.component_handles import ComponentHandle
from tests.e2e.driver import installation
from tests.e2e.driver.installation import Drivers
from tests.e2e.legacy.slot_stories import A, SlotStory
from tests.e2e.sharing.objects import Object

LOCAL = "/devices/virtual/misc/loop-control"
"""A device that every node has for itself."""

DRA, DEVICE_PLUGIN = "dra", "device-plugin"

WAITS = "waiting until no driver of this node takes another path"
SERVES = "Registered with the kubelet"
GOES_ON = "devices are offered path="


@dataclass(kw_only=True)
class MovingStory(SlotStory):
    """A story of the local device of one node, whoever offers it."""

    moves: int = 0

    def device(self, word: str) -> str:
        """The Instance of node-a, named as Akri names those of one node."""
        return f"{self.name}-{hashlib.blake2b(f'{word}{A}'.encode(), digest_size=3).hexdigest()}"

    def words(self) -> list[str]:
        return [LOCAL]

    def find_local(self, **spec: Any) -> None:
        """Apply a Configuration that finds it."""
        details = json.dumps({"udevRules": [f'DEVPATH=="{LOCAL}"']})
        self.apply_configuration({"name": "udev", "discoveryDetails": details}, **spec)

    def take(self, path: str) -> None:
        """Let other drivers take this path, as an update of the DaemonSet does.

        They wait as long as those before them run, and one is killed as soon as it goes on.
        """
        before, self.moves = self.drivers, self.moves + 1
        nodes = {node: self._successor(node, path) for node in before.nodes}
        self.drivers = Drivers(nodes, before.shared)
        for node, successor in nodes.items():
            self._wait_says(successor, WAITS)
            before.nodes[node].stop()
            self._wait_says(successor, GOES_ON)
        killed = nodes[A]
        before_it = killed.logs().count(SERVES)
        killed.kill()
        self.until(f"{killed.name} serves again", lambda: killed.logs().count(SERVES) > before_it)

    def _wait_says(self, driver: ComponentHandle, phrase: str) -> None:
        self.until(f"{driver.name} says: {phrase}", lambda: phrase in driver.logs())

    def _successor(self, node: str, path: str) -> ComponentHandle:
        driver = installation.node_driver(node)
        return self.cluster.start_component(
            replace(
                driver,
                name=f"{driver.name}-{self.name}-{self.moves}",
                argv=(*driver.argv, "--path", path),
                env={"POD_UID": f"{self.name}-{self.moves}"},
                ready=None,
            )
        )

    def published(self) -> list[Object]:
        """The device as claims see it; several if each slot is one."""
        return [
            device
            for slice_ in self.all("slice")
            if slice_["spec"]["driver"] == "moorage.dev"
            for device in slice_["spec"].get("devices") or ()
            if device["attributes"]["instance"]["string"] == self.device(LOCAL)
        ]

    def left(self) -> list[str]:
        """How many uses claims can have of each device that is published and not tainted."""
        whole = {"slots": {"value": "1"}}
        devices = [device for device in self.published() if not device.get("taints")]
        return [device.get("capacity", whole)["slots"]["value"] for device in devices]

    def wait_left(self, *uses: str) -> None:
        self.until(f"claims can have {uses} uses", lambda: self.left() == list(uses))

    def claimed(self) -> int:
        """How many claims have the device."""
        return sum("allocation" in claim.get("status", {}) for claim in self.all("claim"))

    def refusal(self, pod: str) -> str:
        """Why kube-scheduler has no node for a pod; empty if it has one, or has not said."""
        found = self.get("pod", pod)
        conditions = found["status"].get("conditions") or ()
        said = (c.get("message", "") for c in conditions if c["type"] == "PodScheduled")
        return "" if "nodeName" in found["spec"] else next(said, "")

    def describe(self) -> Iterator[str]:
        yield f"claims can have {self.published()}"
        yield from super().describe()
