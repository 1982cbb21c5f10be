"""What a story is told with in which the drivers of both nodes take another path."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from local_cluster.component_handles import ComponentHandle
from tests.e2e.driver import installation
from tests.e2e.driver.installation import Drivers
from tests.e2e.driver.stories import SCHEDULER
from tests.e2e.legacy import kubelets
from tests.e2e.legacy.drivers import start_shared
from tests.e2e.legacy.slot_stories import LAST_LINES, A, B, SlotStory, digest
from tests.e2e.sharing.objects import Object

LOCAL = "/devices/virtual/misc/loop-control"
"""A device that every node has for itself; the story tells of that of node-a."""

SHARED = "foo0"
"""A device that all nodes see."""

ANY_SHARED = "any shared"
"""Asks for any of those."""

DRA, DEVICE_PLUGIN = "dra", "device-plugin"

WAITS = "waiting until no driver of this node takes another path"
SERVES = "Registered with the kubelet"
GOES_ON = "devices are offered path="


@dataclass(kw_only=True)
class MovingStory(SlotStory):
    """A story of the local device of one node, whoever offers it."""

    moves: int = 0

    @property
    def shared_name(self) -> str:
        """Of the Configuration whose devices all nodes see."""
        return f"{self.name}e"

    def device(self, word: str) -> str:
        """The Instance, named as Akri names it."""
        if word == SHARED:
            return f"{self.shared_name}-{digest(word)}"
        return f"{self.name}-{digest(word + A)}"

    def resource(self, word: str) -> str:
        return self.shared_name if word == ANY_SHARED else super().resource(word)

    def find_devices(self, *, local: int, shared: int) -> None:
        """Apply Configurations that find both, with so many slots."""
        details = json.dumps({"udevRules": [f'DEVPATH=="{LOCAL}"']})
        self.apply_configuration({"name": "udev", "discoveryDetails": details}, capacity=local)
        details = json.dumps({"descriptions": [SHARED]})
        handler = {"name": "debugEcho", "discoveryDetails": details}
        echo = replace(self, name=self.shared_name)
        echo.apply_configuration(handler, capacity=shared)

    def pod_spec(self, asks: Mapping[str, int], node: str = "", **options: Any) -> Object:
        """Through DRA, no other scheduler may allocate what it asks for."""
        return {**super().pod_spec(asks, node, **options), "schedulerName": SCHEDULER}

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
        before.shared.stop()
        self.drivers = Drivers(nodes, start_shared(self.cluster, path))
        self.until(f"{killed.name} serves again", lambda: killed.logs().count(SERVES) > before_it)
        if path == DRA:
            self._wait_no_plugin()

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

    def published(self, word: str) -> list[Object]:
        """A device as claims see it; several if each slot is one."""
        return [
            device
            for slice_ in self.all("slice")
            if slice_["spec"]["driver"] == "moorage.dev"
            for device in slice_["spec"].get("devices") or ()
            if device["attributes"]["instance"]["string"] == self.device(word)
        ]

    def left(self, word: str) -> list[str]:
        """How many uses claims can have of a device, by what is published and not tainted."""
        whole = {"slots": {"value": "1"}}
        devices = [device for device in self.published(word) if not device.get("taints")]
        return [device.get("capacity", whole)["slots"]["value"] for device in devices]

    def _wait_no_plugin(self) -> None:
        """kube-scheduler believes the Node, and the kubelet refuses what its plugin gave before."""

        def offered() -> list[int]:
            nodes = (kubelets.allocatable(self.cluster, node) for node in (A, B))
            return [n for found in nodes for k, n in found.items() if k.startswith(self.name) and n]

        self.until("no Node offers a device of a device plugin", lambda: not offered())

    def wait_left(self, word: str, *uses: str) -> None:
        self.until(f"claims can have {uses} of {word}", lambda: self.left(word) == list(uses))

    def claimed(self) -> int:
        """How many claims have a device."""
        return sum("allocation" in claim.get("status", {}) for claim in self.all("claim"))

    def refusal(self, pod: str) -> str:
        """Why kube-scheduler has no node for a pod; empty if it has one, or has not said."""
        found = self.get("pod", pod)
        conditions = found["status"].get("conditions") or ()
        said = (c.get("message", "") for c in conditions if c["type"] == "PodScheduled")
        return "" if "nodeName" in found["spec"] else next(said, "")

    def pods_are_refused(self, wants: Mapping[str, str]) -> None:
        """Pods on node-a, by name, for which there is no device left now."""
        for name, word in wants.items():
            self.pod(name, {word: 1}, A)
        for name in wants:
            self.until(f"{name} is refused", partial(self.refusal, name))

    def end_together(self, *pods: str) -> None:
        """Delete pods that have run all the time."""
        for pod in pods:
            assert (self.phase(pod), self.restarts(pod)) == ("Running", 0), pod
            self.api.delete(f"{self.path('pod', pod)}?gracePeriodSeconds=1")
        for pod in pods:
            self.until(f"{pod} is gone", partial(self._is_gone, pod))

    def _is_gone(self, pod: str) -> bool:
        return self.find("pod", pod) is None

    def describe(self) -> Iterator[str]:
        for word in (LOCAL, SHARED):
            yield f"claims can have {self.published(word)}"
        yield from self.drivers.shared.logs().splitlines()[-LAST_LINES:]
        yield from super().describe()
