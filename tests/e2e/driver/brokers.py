"""What stories of brokers are told with: Akri's labels, and what is counted by them."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from local_cluster.api import BUSYBOX_IMAGE, Cluster
from tests.e2e.charts import render

T = TypeVar("T")

SECONDS = 90.0
ACCOUNT = "moorage-brokers"
NODES = ("node-a", "node-b")
WORDS = ("bar0", "bar1")
"""The devices of Akri's own test."""


def allow_everywhere(cluster: Cluster) -> None:
    """Give the shared driver what the chart gives it for `brokers.namespaces: ["*"]`."""
    cluster.apply([each for each in _objects("*") if each["kind"].startswith("ClusterRole")])


def allow(cluster: Cluster, namespace: str) -> None:
    """Make the account of brokers in a namespace, as the chart does."""
    made = [each for each in _objects(namespace) if each["metadata"]["name"] == ACCOUNT]
    assert {each["kind"] for each in made} == {"ServiceAccount", "Role", "RoleBinding"}
    cluster.apply(made)


def _objects(namespace: str) -> list[dict[str, Any]]:
    found = render({"brokers": {"namespaces": [namespace]}})
    return [each for each in found if "brokers" in each["metadata"]["name"]]


def pod_spec(command: str = "exec sleep 100000", **fields: Any) -> dict[str, Any]:
    """A broker's PodSpec that asks for one slot, by Akri's placeholder."""
    container = {
        "name": "broker",
        "image": BUSYBOX_IMAGE,
        "imagePullPolicy": "Never",
        "command": ["sh", "-c", f"env | sort | grep DEBUG_ECHO_; {command}"],
        "resources": {"limits": {"{{PLACEHOLDER}}": "1"}, "requests": {"{{PLACEHOLDER}}": "1"}},
    }
    return {"terminationGracePeriodSeconds": 0, "containers": [container], **fields}


@dataclass(frozen=True)
class Devices:
    """Devices in words: all of them go and come by these files."""

    files: Sequence[Path]

    def go(self) -> None:
        for file in self.files:
            file.write_text("OFFLINE")

    def come(self) -> None:
        for file in self.files:
            file.write_text("ONLINE")


SERVICE = {"type": "ClusterIP", "ports": [{"name": "http", "port": 80, "targetPort": 8083}]}


@dataclass(kw_only=True)
class BrokerStory:
    """One Configuration of devices in words, and all that is made for it.

    Attributes:
        fields: What every broker's PodSpec has, such as its scheduler.
    """

    cluster: Cluster
    namespace: str
    name: str
    fields: dict[str, Any]

    def configure(self, labels: Mapping[str, str] | None = None, **spec: Any) -> None:
        """Apply the Configuration; by default two brokers a device on two nodes, and Services."""
        body = {
            "apiVersion": "akri.sh/v0",
            "kind": "Configuration",
            "metadata": {"name": self.name, "labels": dict(labels or {})},
            "spec": {
                "discoveryHandler": {
                    "name": "debugEcho",
                    "discoveryDetails": json.dumps({"descriptions": list(WORDS)}),
                },
                "capacity": 2,
                "offlineGracePeriod": "1s",
                "brokerSpec": {"brokerPodSpec": pod_spec(**self.fields)},
                "instanceServiceSpec": SERVICE,
                "configurationServiceSpec": SERVICE,
                **spec,
            },
        }
        self.cluster.apply(body, namespace=self.namespace)

    def end(self) -> None:
        """Delete the Configuration, which would make its brokers anew."""
        arguments = ("--ignore-not-found", "-n", self.namespace)
        self.cluster.kubectl("delete", "akric", self.name, *arguments)
        self.until("no broker is left", lambda: not self.pods())

    def until(self, what: str, condition: Callable[[], T | None]) -> T:
        return self.cluster.wait_until(what, condition, seconds=SECONDS)

    def pods(self) -> list[dict[str, Any]]:
        """What Akri's test counts: by the label of the Configuration."""
        return self._all("pods", f"akri.sh/configuration={self.name}")

    def instances(self) -> list[dict[str, Any]]:
        """Of all Configurations of the namespace; stories have one."""
        return self._all("akrii", "")

    def services(self) -> list[dict[str, Any]]:
        """Those of the Instances, and that of the Configuration."""
        return self._all("services", "controller=akri.sh")

    def running(self) -> list[dict[str, Any]]:
        return [
            pod
            for pod in self.pods()
            if pod["status"]["phase"] == "Running" and not pod["metadata"].get("deletionTimestamp")
        ]

    def counts(self) -> tuple[int, int, int, int]:
        """Instances, running brokers, Services of Instances, Services of the Configuration."""
        of_instances = self._all("services", "akri.sh/instance")
        of_configuration = self._all("services", f"akri.sh/configuration={self.name}")
        brokers = self.running() or self.pods()
        return len(self.instances()), len(brokers), len(of_instances), len(of_configuration)

    def wait_counts(self, *expected: int) -> None:
        self.until(f"{expected} are there", lambda: self.counts() == expected)

    def logs(self, pod: dict[str, Any]) -> str:
        """What a broker prints; "" before it has begun."""
        name = pod["metadata"]["name"]
        return self.cluster.kubectl("logs", "-n", self.namespace, name, check=False).stdout

    def condition(self) -> dict[str, Any]:
        """The condition of the brokers; {} before there is one."""
        body = self.cluster.get("akric", self.name, namespace=self.namespace) or {}
        found = body.get("status", {}).get("conditions", ())
        return next((each for each in found if each["type"] == "BrokersReady"), {})

    def wait_condition(self, status: str, words: str) -> None:
        def says() -> bool:
            found = self.condition()
            return found.get("status") == status and words in found["message"]

        self.until(f"BrokersReady is {status}: {words}", says)

    def _all(self, kind: str, selector: str) -> list[dict[str, Any]]:
        return self.cluster.list(kind, namespace=self.namespace, selector=selector or None)


@contextmanager
def told(cluster: Cluster, namespace: str, name: str, **fields: Any) -> Iterator[BrokerStory]:
    """A story in a namespace that may have brokers; none of them is left at its end."""
    allow(cluster, namespace)
    found = BrokerStory(cluster=cluster, namespace=namespace, name=name, fields=fields)
    yield found
    found.end()
