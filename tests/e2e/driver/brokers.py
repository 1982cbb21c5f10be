"""What stories of brokers are told with: Akri's labels, and what is counted by them."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
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

    def configure(self, **spec: Any) -> None:
        """Apply the Configuration; by default two brokers a device on two nodes, and Services."""
        body = {
            "apiVersion": "akri.sh/v0",
            "kind": "Configuration",
            "metadata": {"name": self.name},
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

    def until(self, what: str, condition: Callable[[], T | None]) -> T:
        return self.cluster.wait_until(what, condition, seconds=SECONDS)

    def pods(self) -> list[dict[str, Any]]:
        """What Akri's test counts: by the label of the Configuration."""
        return self._all("pods", f"akri.sh/configuration={self.name}")

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
        instances = self._all("akrii", "")
        return len(instances), len(brokers), len(of_instances), len(of_configuration)

    def wait_counts(self, *expected: int) -> None:
        self.until(f"{expected} are there", lambda: self.counts() == expected)

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


def play_all_scheduled(story: BrokerStory) -> None:
    """Akri's test_core::test_all_scheduled, on two nodes, with what a broker is given."""
    story.configure()
    story.wait_counts(2, 4, 2, 1)
    story.wait_condition("True", "4 brokers run.")
    for pod in story.pods():
        labels = pod["metadata"]["labels"]
        assert labels["controller"] == "akri.sh"
        assert labels["app"] == pod["metadata"]["name"]
        assert pod["spec"]["nodeName"] == labels["akri.sh/target-node"]
        assert pod["metadata"]["name"].startswith(f"{pod['spec']['nodeName']}-{story.name}-")
        (owner,) = pod["metadata"]["ownerReferences"]
        assert (owner["kind"], owner["name"]) == ("Instance", labels["akri.sh/instance"])


def play_device_offline(
    story: BrokerStory, *, go: Callable[[], Any], come: Callable[[], Any]
) -> None:
    """Akri's test_core::test_device_offline: devices go, and what was made for them with them."""
    story.configure()
    story.wait_counts(2, 4, 2, 1)
    for pod in story.running():
        logs = story.until("it tells its device", partial(_logs, story, pod))
        assert "DEBUG_ECHO_DESCRIPTION" in logs
    go()
    story.wait_counts(0, 0, 0, 0)
    come()
    story.wait_counts(2, 4, 2, 1)


def _logs(story: BrokerStory, pod: dict[str, Any]) -> str:
    name = pod["metadata"]["name"]
    return story.cluster.kubectl("logs", "-n", story.namespace, name, check=False).stdout


def play_cleanup(story: BrokerStory) -> None:
    """Akri's test_core::test_cleanup: the Configuration is deleted."""
    story.configure()
    story.wait_counts(2, 4, 2, 1)
    story.cluster.kubectl("delete", "akric", story.name, "-n", story.namespace)
    story.wait_counts(0, 0, 0, 0)


def play_recreated_if_deleted(story: BrokerStory) -> None:
    """Akri's test_core::test_broker_recreated_if_deleted."""
    story.configure()
    story.wait_counts(2, 4, 2, 1)
    before = {pod["metadata"]["uid"] for pod in story.running()}
    victim = story.running()[0]["metadata"]
    story.cluster.kubectl("delete", "pod", victim["name"], "-n", story.namespace)
    story.wait_counts(2, 4, 2, 1)
    after = {pod["metadata"]["uid"] for pod in story.running()}
    assert len(before & after) == 3
    assert victim["uid"] not in after


def play_changes(story: BrokerStory) -> None:
    """The capacity is lowered and raised, the PodSpec changed, Services and brokers taken away."""
    story.configure()
    story.wait_counts(2, 4, 2, 1)
    first = {pod["metadata"]["uid"] for pod in story.running()}
    story.configure(capacity=1)
    story.wait_counts(2, 2, 2, 1)
    assert {pod["metadata"]["uid"] for pod in story.running()} < first
    changed = {"brokerPodSpec": pod_spec("echo changed; exec sleep 100000", **story.fields)}
    story.configure(brokerSpec=changed)
    story.until("all are made anew", lambda: _are_new(story, first, 4))
    story.wait_condition("True", "4 brokers run.")
    story.configure(brokerSpec=None, instanceServiceSpec=None, configurationServiceSpec=None)
    story.wait_counts(2, 0, 0, 0)
    story.until("nothing is said of brokers", lambda: not story.condition())


def _are_new(story: BrokerStory, before: set[str], count: int) -> bool:
    now = {pod["metadata"]["uid"] for pod in story.running()}
    return len(now) == count and not now & before


def play_jobs(story: BrokerStory) -> None:
    """A Job runs once for each device, and again when its specification changes."""
    story.configure(brokerSpec={"brokerJobSpec": _job_spec(story, "exit 0")})
    jobs = story.until("both Jobs are complete", lambda: _complete(story, 2))
    generation = story.cluster.get("akric", story.name, namespace=story.namespace) or {}
    number = generation["metadata"]["generation"]
    assert all(job["metadata"]["name"].endswith(f"-{number}-job") for job in jobs)
    story.wait_condition("True", "2 Jobs exist, 2 of them ended.")
    done = jobs[0]["metadata"]
    story.cluster.kubectl("delete", "job", done["name"], "-n", story.namespace)
    story.configure(capacity=3, brokerSpec={"brokerJobSpec": _job_spec(story, "exit 0")})
    story.wait_condition("True", "1 Job exist, 1 of them ended.")
    story.configure(capacity=3, brokerSpec={"brokerJobSpec": _job_spec(story, "echo again")})
    again = story.until("both run again", lambda: _complete(story, 2))
    assert not {job["metadata"]["uid"] for job in jobs} & {job["metadata"]["uid"] for job in again}


def _job_spec(story: BrokerStory, command: str) -> dict[str, Any]:
    template = {"spec": {**pod_spec(command, **story.fields), "restartPolicy": "OnFailure"}}
    return {"template": template, "backoffLimit": 2, "parallelism": 1, "completions": 1}


def _complete(story: BrokerStory, count: int) -> list[dict[str, Any]]:
    jobs = story.cluster.list("jobs", namespace=story.namespace)
    done = [job for job in jobs if job.get("status", {}).get("succeeded") == 1]
    return done if len(done) == len(jobs) == count else []


def play_not_allowed(story: BrokerStory) -> None:
    """The account of the namespace has no rights: nothing is made, and the condition says so."""
    selector = f"akri.sh/configuration={story.name}"
    story.cluster.kubectl("delete", "rolebinding", ACCOUNT, "-n", story.namespace)
    story.configure()
    story.wait_condition("False", "cannot create resource")
    assert not story.cluster.list("pods", namespace=story.namespace, selector=selector)
    allow(story.cluster, story.namespace)
    story.wait_counts(2, 4, 2, 1)
    story.wait_condition("True", "4 brokers run.")


def play_failing_brokers(story: BrokerStory) -> None:
    """A pod that fails at once is made again later each time: no stream of pods (Akri's #801)."""
    failing = {"brokerPodSpec": {**pod_spec("exit 1", **story.fields), "restartPolicy": "Never"}}
    story.configure(brokerSpec=failing, capacity=1)
    seen: set[str] = set()

    def made_thrice() -> bool:
        seen.update(pod["metadata"]["uid"] for pod in story.pods())
        return len(seen) >= 6

    story.until("two brokers were made three times", made_thrice)
    first = {pod["metadata"]["creationTimestamp"] for pod in story.pods()}
    assert len(story.pods()) <= 2
    assert first


def play_deployment(story: BrokerStory) -> None:
    """The Deployment at the end of Akri's document on resources of Configurations.

    Two replicas ask for two devices each. With one device both are pending; when another one is
    discovered, both run, each with a slot of both devices.
    """
    without = {"brokerSpec": None, "instanceServiceSpec": None, "configurationServiceSpec": None}
    story.configure(**without, discoveryHandler=_discovering(WORDS[:1]))
    story.cluster.apply(_deployment(story), namespace=story.namespace)
    story.until("both are pending", lambda: _phases(story) == ["Pending", "Pending"])
    story.until("kube-scheduler found no room for them", lambda: _are_unschedulable(story))
    story.configure(**without, discoveryHandler=_discovering(WORDS))
    story.until("both run", lambda: _phases(story) == ["Running", "Running"])


def _discovering(words: Sequence[str]) -> dict[str, str]:
    details = json.dumps({"descriptions": list(words)})
    return {"name": "debugEcho", "discoveryDetails": details}


def _deployment(story: BrokerStory) -> dict[str, Any]:
    resource = {f"akri.sh/{story.name}": "2"}
    spec = pod_spec(**story.fields)
    spec["containers"][0]["resources"] = {"requests": resource, "limits": resource}
    labels = {"name": "onvif-broker"}
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "onvif-broker-deployment"},
        "spec": {
            "replicas": 2,
            "selector": {"matchLabels": labels},
            "template": {"metadata": {"labels": labels}, "spec": spec},
        },
    }


def _replicas(story: BrokerStory) -> list[dict[str, Any]]:
    return story.cluster.list("pods", namespace=story.namespace, selector="name=onvif-broker")


def _phases(story: BrokerStory) -> list[str]:
    return sorted(pod["status"].get("phase", "") for pod in _replicas(story))


def _are_unschedulable(story: BrokerStory) -> bool:
    conditions = [pod["status"].get("conditions", ()) for pod in _replicas(story)]
    return all(any(c.get("reason") == "Unschedulable" for c in found) for found in conditions)
