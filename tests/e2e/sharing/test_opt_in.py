"""Pods of a namespace that opted in: they say nothing of schedulers, queues or gates."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.e2e.sharing import admission, objects
from tests.e2e.sharing.admission import GATE, MANAGED
from tests.e2e.sharing.objects import QUEUE, SCHEDULER, Object
from tests.e2e.sharing.plugin import Plugin
from tests.e2e.sharing.stories import Story
from tests.e2e.webhook.installation import WebhookProcess

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
    story.until("two is told what it waits for", lambda: _waits(story, "two") == "OverLimit")
    assert "schedulingGates" in story.get("pod", "two")["spec"]

    story.delete("pod", "one")

    story.wait_bound("two")
    story.wait_figures({vision: 1})


def _waits(story: Story, pod: str) -> str:
    """The reason of the condition that the plugin writes."""
    conditions = story.get("pod", pod)["status"].get("conditions", ())
    return next((c["reason"] for c in conditions if c["type"] == ADMITTED), "")


def _refused(story: Story) -> str:
    found = (story.refused(pod, "OverLimit: ") for pod in ("one", "two"))
    return next((sentence for sentence in found if sentence), "")


def _a_pod(name: str, claim: str) -> Object:
    """As somebody writes it who knows nothing of Moorage."""
    return objects.pod(name, (claim,), schedulerName="default-scheduler")
