"""What a story of charges is told with: devices that fake nodes offer, and no claims at all."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from local_cluster.api import ApiError
from tests.e2e.sharing.objects import Object
from tests.e2e.sharing.stories import NODE, OTHER_NODE, Story

__all__ = ["NODE", "OTHER_NODE", "LegacyStory"]

HASHES = ("8120fe", "a19705")
BY_HAND = "by-hand"
"""A discovery handler that no driver has: it leaves what the story wrote alone."""


class LegacyStory(Story):
    """One test's own queues, Configuration and Instances; their slots are the nodes' to offer."""

    def offer(self, name: str = "", *, capacity: int = 3) -> list[str]:
        """Write a Configuration with two Instances that both fake nodes see; returns their names.

        The nodes offer what the device plugin would: each Instance once through the Configuration,
        and all its slots.
        """
        name = name or self.name
        self.create("configuration", configuration(name, capacity))
        instances = [f"{name}-{digest}" for digest in HASHES]
        for instance in instances:
            self.create("instance", an_instance(name, instance, capacity))
        offered = {name: len(instances), **dict.fromkeys(instances, capacity)}
        for node in (NODE, OTHER_NODE):
            self.let_node_offer(node, offered)
        return instances

    def let_node_offer(self, node: str, offered: dict[str, int]) -> None:
        """Amounts by name without `akri.sh/`, as a kubelet reports them."""
        amounts = {resource(name): str(amount) for name, amount in offered.items()}
        status = {"capacity": amounts, "allocatable": amounts}
        self.api.patch(f"/api/v1/nodes/{node}/status", {"status": status})

    def user(self, name: str, queue: str, asked: str = "", amount: int = 1, **options: Any) -> None:
        """A pod that asks for so many of a Configuration (this story's) or of an Instance."""
        limits = wants({asked or self.name: amount})
        self.plain_pod(name, queue, resources=limits, **options)

    def finish(self, pod: str, phase: str) -> None:
        """Say what the kubelet would, had the node one."""
        self.patch("pod", pod, {"status": {"phase": phase}}, "/status")

    def all(self, kind: str) -> list[Object]:
        """What is not served here has no objects."""
        try:
            return super().all(kind)
        except ApiError as error:
            if error.status != 404:
                raise
            return []

    def end_pods(self) -> None:
        """Delete pods, and wait until nodes are free."""
        for pod in self.all("pod"):
            # Nobody but the API server ends pods of nodes that have no kubelet.
            is_real = pod["spec"].get("nodeName", NODE) not in (NODE, OTHER_NODE)
            name = pod["metadata"]["name"]
            self.api.delete(f"{self.path('pod', name)}?gracePeriodSeconds={int(is_real)}")
        self.until("pods are gone", lambda: not self.all("pod"))


def resource(name: str) -> str:
    return f"akri.sh/{name}"


def wants(amounts: dict[str, int]) -> Object:
    """The resources of a container that asks for these."""
    return {"limits": {resource(name): str(amount) for name, amount in amounts.items()}}


def container(name: str, amounts: dict[str, int], **fields: Any) -> Object:
    return {"name": name, "image": "none", "resources": wants(amounts), **fields}


def configuration(name: str, capacity: int, **spec: Any) -> Object:
    return {
        "apiVersion": "akri.sh/v0",
        "kind": "Configuration",
        "metadata": {"name": name},
        "spec": {"discoveryHandler": {"name": BY_HAND}, "capacity": capacity, **spec},
    }


def an_instance(
    configuration_name: str, name: str, capacity: int, nodes: Iterable[str] = (NODE, OTHER_NODE)
) -> Object:
    digest = name.rpartition("-")[2]
    spec = {
        "configurationName": configuration_name,
        "cdiName": f"akri.sh/{configuration_name}={digest}",
        "capacity": capacity,
        "shared": True,
        "nodes": list(nodes),
    }
    return {
        "apiVersion": "akri.sh/v0",
        "kind": "Instance",
        "metadata": {"name": name},
        "spec": spec,
    }
