"""Akri's scenarios of brokers, and what goes beyond them, for both kinds of clusters."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from tests.e2e.driver.brokers import ACCOUNT, WORDS, BrokerStory, allow, pod_spec


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
        logs = story.until("it tells its device", partial(story.logs, pod))
        assert "DEBUG_ECHO_DESCRIPTION" in logs
    go()
    story.wait_counts(0, 0, 0, 0)
    come()
    story.wait_counts(2, 4, 2, 1)


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
    story.wait_condition("True", "1 Job exists, 1 of them ended.")
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


def play_too_many(story: BrokerStory) -> None:
    """More brokers than the Configuration may have: none is made until its owner says so."""
    story.configure(maxBrokers=3)
    story.wait_condition("False", "4 brokers would run, and 3 are the most")
    assert not story.pods()
    story.configure(maxBrokers=4)
    story.wait_counts(2, 4, 2, 1)


def play_akri_beside(story: BrokerStory) -> None:
    """Akri's own controller runs: it is told, and not fought; once it is gone, brokers come."""
    labels = {"app.kubernetes.io/name": "akri-controller"}
    controller: dict[str, Any] = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "akri-controller", "labels": labels},
        "spec": {"nodeName": "node-a", **pod_spec()},
    }
    controller["spec"]["containers"][0]["resources"] = {}
    story.cluster.apply(controller, namespace=story.namespace)
    story.configure()
    story.wait_condition("False", "controller.enabled=false")
    assert not story.pods()
    story.cluster.kubectl("delete", "pod", "akri-controller", "-n", story.namespace)
    story.wait_counts(2, 4, 2, 1)


SAMPLE = (
    'node="$(env | sed -nE "s/^UDEV_DEVNODE_[A-F0-9]{6}=//p" | head -n1)"; '
    'test -c "$node" && echo it has a device; exec sleep 100000'
)
"""Finds its device as Akri's `udev-video-broker` does: by a name that ends in six digits."""


def play_dev_null_config(story: BrokerStory) -> None:
    """Akri's test_udev::test_dev_null_config, with what its sample broker and its app rely on.

    Source: `samples/brokers/udev-video-broker/src/main.rs` and
    `samples/apps/video-streaming-app/app.py` of Akri 0.12.
    """
    details = 'udevRules:\n- KERNEL=="null"\npermissions: rwm\n'
    service = {"ports": [{"name": "grpc", "port": 80, "targetPort": 8083}], "type": "ClusterIP"}
    story.configure(
        discoveryHandler={"name": "udev", "discoveryDetails": details},
        capacity=1,
        brokerSpec={"brokerPodSpec": pod_spec(SAMPLE, **story.fields)},
        instanceServiceSpec=service,
        configurationServiceSpec=service,
    )
    story.wait_counts(2, 2, 2, 1)
    for pod in story.running():
        assert pod["metadata"]["name"] == f"{pod['metadata']['labels']['akri.sh/instance']}-pod"
        story.until("it found its device", partial(_has_device, story, pod))
    instances = "|".join(instance["metadata"]["name"] for instance in story.instances())
    assert re.fullmatch(rf"({story.name}-[\da-f]{{6}}\|?){{2}}", instances)
    for made in story.services():
        assert re.fullmatch(rf"({instances}|{story.name})-svc", made["metadata"]["name"])
        assert [port["name"] for port in made["spec"]["ports"]] == ["grpc"]
        story.until("it leads to its brokers", partial(_leads_to_brokers, story, made))


def _has_device(story: BrokerStory, pod: dict[str, Any]) -> bool:
    return "it has a device" in story.logs(pod)


def _leads_to_brokers(story: BrokerStory, service: dict[str, Any]) -> bool:
    name, selector = service["metadata"]["name"], service["spec"]["selector"]
    slices = story.cluster.list(
        "endpointslices",
        namespace=story.namespace,
        selector=f"kubernetes.io/service-name={name}",
    )
    wanted = {
        pod["status"]["podIP"]
        for pod in story.running()
        if selector.items() <= pod["metadata"]["labels"].items()
    }
    found = {ip for each in slices for end in each["endpoints"] or () for ip in end["addresses"]}
    return bool(wanted) and found == wanted


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
    deployment = "onvif-broker-deployment"
    story.cluster.kubectl("delete", "deployment", deployment, "-n", story.namespace)
    story.until("both are gone", lambda: not _replicas(story))


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
