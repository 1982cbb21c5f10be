"""Pods of a namespace that opted in: they say nothing of schedulers, queues or gates."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

import pytest

from tests.e2e.sharing import admission, objects
from tests.e2e.sharing.admission import GATE, MANAGED
from tests.e2e.sharing.objects import QUEUE, SCHEDULER, Object
from tests.e2e.sharing.plugin import Plugin
from tests.e2e.sharing.stories import NODE, OTHER_NODE, Story
from tests.e2e.webhook.installation import WebhookProcess

DEFAULT = "default-scheduler"
ADMITTED = "moorage.dev/Admitted"


@pytest.fixture(scope="module")
def webhook(plugin: Plugin) -> Iterator[WebhookProcess]:
    with admission.webhook(plugin.cluster) as process:
        yield process


@pytest.fixture
def vision(story: Story, webhook: WebhookProcess) -> str:
    """A queue for one device, the queue of all pods of the namespace; two claims."""
    queue = story.queue("vision", limit=1)
    story.devices(2)
    story.claim("one")
    story.claim("two")
    story.label_namespace({MANAGED: "true", QUEUE: queue})
    story.until("the namespace has opted in", lambda: _has_opted_in(story, queue))
    return queue


def _has_opted_in(story: Story, queue: str) -> bool:
    """Whether API server and webhook know it; neither tells when."""
    probe = story.api.create(f"{story.path('pod')}?dryRun=All", _a_pod("probe", "one"))
    labels = probe["metadata"].get("labels", {})
    return bool(probe["spec"]["schedulerName"] == SCHEDULER and labels == {QUEUE: queue})


def test_where_pods_are_tried_again_they_wait_at_no_gate_but_in_the_scheduler(
    story: Story, vision: str, webhook: WebhookProcess
) -> None:
    with admission.other_flags(webhook, "--hold=Retry"):
        for name in ("one", "two"):
            pod = story.create("pod", _a_pod(name, name))
            assert pod["spec"]["schedulerName"] == SCHEDULER
            assert "schedulingGates" not in pod["spec"]
            assert pod["metadata"]["labels"] == {QUEUE: vision}
    refused = story.until("one is refused", lambda: _refused(story))
    (first,) = story.bound()

    story.delete("pod", first)

    story.wait_bound(*({"one", "two"} - {first}))
    assert f'queue "{vision}"' in refused
    story.wait_figures({vision: 1})


def test_where_there_is_a_gate_they_wait_at_it_and_go_when_there_is_room(
    story: Story, vision: str
) -> None:
    for name in ("one", "two"):
        pod = story.create("pod", _a_pod(name, name))
        assert pod["spec"]["schedulerName"] == SCHEDULER
        assert pod["spec"]["schedulingGates"] == [{"name": GATE}]
        assert pod["metadata"]["labels"] == {QUEUE: vision}
    story.wait_bound("one")
    story.until("two is told what it waits for", partial(_is_told, story, "two", "OverLimit"))
    assert "schedulingGates" in story.get("pod", "two")["spec"]

    story.delete("pod", "one")

    story.wait_bound("two")
    story.wait_figures({vision: 1})


def test_a_pod_may_come_before_its_claim_whoever_counts_that(story: Story, vision: str) -> None:
    free = f"free-{story.name}"
    story.create("class", objects.device_class(free, story.driver, accounted="false"))
    for name in ("counted", "nobodys"):
        story.create("pod", _a_pod(name, name))
        story.until(f"{name} is told", partial(_is_told, story, name, "ClaimNotFound"))

    story.claim("counted")
    story.wait_bound("counted")
    story.wait_figures({vision: 1})
    story.claim("nobodys", class_name=free)

    story.wait_bound("nobodys")
    story.wait_figures({vision: 1})
    assert (story.owner("counted"), story.owner("nobodys")) == (vision, "")


def test_pods_of_a_daemon_set_wait_as_others_do(story: Story, vision: str) -> None:
    story.devices(1, node=OTHER_NODE)
    story.template("own")
    path = f"/apis/apps/v1/namespaces/{story.namespace}/daemonsets"
    story.api.create(path, _a_daemon_set("each", NODE, OTHER_NODE))
    try:
        story.until("one pod is bound", lambda: len(story.bound()) == 1)
        story.until("one waits", lambda: len(_waiting(story, "OverLimit")) == 1)
        story.change_queue(vision, {"resources": [{"deviceClass": story.name, "limit": 2}]})
        story.until("both are bound", lambda: len(story.bound()) == 2)
        story.wait_figures({vision: 2})
    finally:
        story.api.delete(f"{path}/each")


def _waiting(story: Story, reason: str) -> list[str]:
    names = (pod["metadata"]["name"] for pod in story.all("pod"))
    return [name for name in names if _is_told(story, name, reason)]


def _a_daemon_set(name: str, *nodes: str) -> Object:
    """One pod on each of the nodes, from a template that anybody might write."""
    pod = objects.pod(name, templates=["own"], labels={"app": name}, schedulerName=DEFAULT)
    expression = {"key": "kubernetes.io/hostname", "operator": "In", "values": nodes}
    terms = {"nodeSelectorTerms": [{"matchExpressions": [expression]}]}
    affinity = {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": terms}}
    template = {
        "metadata": {"labels": {"app": name}},
        "spec": {**pod["spec"], "affinity": affinity},
    }
    return {
        "apiVersion": "apps/v1",
        "kind": "DaemonSet",
        "metadata": {"name": name},
        "spec": {"selector": {"matchLabels": {"app": name}}, "template": template},
    }


def _is_told(story: Story, pod: str, reason: str) -> bool:
    """Whether the condition that the plugin writes gives this reason."""
    conditions = story.get("pod", pod)["status"].get("conditions", ())
    return reason in (c["reason"] for c in conditions if c["type"] == ADMITTED)


def _refused(story: Story) -> str:
    found = (story.refused(pod, "OverLimit: ") for pod in ("one", "two"))
    return next((sentence for sentence in found if sentence), "")


def _a_pod(name: str, claim: str) -> Object:
    """As somebody writes it who knows nothing of Moorage."""
    return objects.pod(name, (claim,), schedulerName=DEFAULT)
