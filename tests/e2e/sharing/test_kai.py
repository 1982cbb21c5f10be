"""KAI beside Moorage: its label key, its PodGroups, its preemptibility label, its own scheduler.

KAI itself is not here: what it would write is written by the stories, and the pods of a scheduler
that Moorage knows nothing of are those of the cluster's own.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import partial
from typing import Any

import pytest

from tests.e2e.sharing import admission, objects
from tests.e2e.sharing.objects import Object
from tests.e2e.sharing.plugin import Plugin
from tests.e2e.sharing.stories import CLAIM, Story
from tests.e2e.test_policies import BINDER, POD_GROUP_CRD, QUEUE, with_settings
from tests.e2e.webhook.installation import WebhookProcess

KAI_QUEUE = "kai.scheduler/queue"
KEY = f"--queue-label={KAI_QUEUE}"
KAI_PREEMPTIBILITY = "kai.scheduler/preemptibility"
GROUP = {"pod-group-name": "train"}
DEFINITION = "crd/podgroups.scheduling.run.ai"
ELSEWHERE = {"schedulerName": "default-scheduler"}


@pytest.fixture(scope="module", autouse=True)
def beside_kai(plugin: Plugin) -> Iterator[None]:
    """Moorage set up for KAI's key, in a cluster that has KAI's PodGroups."""
    cluster = plugin.cluster
    cluster.apply(POD_GROUP_CRD)
    cluster.kubectl("wait", DEFINITION, "--for=condition=Established", "--timeout=30s")
    cluster.apply(with_settings(KAI_QUEUE, BINDER))
    try:
        with plugin.started_with(KEY):
            yield
            cluster.kubectl("delete", DEFINITION)
    finally:
        cluster.apply(with_settings(QUEUE, BINDER))


@pytest.fixture(scope="module")
def webhook(plugin: Plugin) -> Iterator[WebhookProcess]:
    with admission.webhook(plugin.cluster, KEY) as process:
        yield process


@pytest.fixture
def group(story: Story, vision: str) -> str:
    """The path of a PodGroup of the queue, which the plugin knows."""
    path = f"/apis/scheduling.run.ai/v2alpha2/namespaces/{story.namespace}/podgroups"
    body = {
        "apiVersion": "scheduling.run.ai/v2alpha2",
        "kind": "PodGroup",
        "metadata": {"name": "train"},
        "spec": {"queue": vision, "minMember": 1},
    }
    story.api.create(path, body)
    story.claim("probe")
    a_pod(story, "probe", "probe", annotations=GROUP)
    story.wait_bound("probe")
    return f"{path}/train"


@pytest.fixture
def vision(story: Story) -> str:
    queue = story.queue("vision")
    story.devices(4)
    return queue


def a_pod(story: Story, name: str, claim: str = CLAIM, **options: Any) -> Object:
    """Create a pod; `labels` and `annotations` are its own."""
    annotations: Mapping[str, str] = options.pop("annotations", {})
    body = objects.pod(name, (claim,), **options)
    body["metadata"]["annotations"] = dict(annotations)
    return story.create("pod", body)


def labels_of(story: Story, kind: str, name: str) -> Mapping[str, str]:
    labels: Mapping[str, str] = story.get(kind, name)["metadata"].get("labels", {})
    return labels


def test_a_group_says_the_queue_of_its_pods_and_never_another(
    story: Story, vision: str, group: str
) -> None:
    robots = story.queue("robots")
    story.claim("own")
    story.claim()
    story.label_namespace({KAI_QUEUE: robots})
    a_pod(story, "alone", "own")
    story.wait_bound("alone")

    a_pod(story, "member", annotations=GROUP)
    story.wait_bound("member")

    story.wait_figures({vision: 2, robots: 1})
    assert labels_of(story, "claim", CLAIM) == {KAI_QUEUE: vision}
    assert labels_of(story, "claim", "own")[KAI_QUEUE] == robots
    # Nobody changes any of that.
    relabel = {"metadata": {"labels": {KAI_QUEUE: robots}}}
    for write, words in (
        (partial(story.api.patch, group, {"spec": {"queue": robots}}), "spec.queue cannot be"),
        (partial(story.api.patch, group, relabel), f"label {KAI_QUEUE} cannot be"),
        (partial(story.patch, "pod", "member", relabel), f"label {KAI_QUEUE} cannot be"),
        (partial(story.patch, "claim", CLAIM, relabel), f"label {KAI_QUEUE} never changes"),
    ):
        assert words in story.refusal(write)


def test_kais_label_says_whether_a_pod_is_preemptible(story: Story, vision: str) -> None:
    robots = story.queue("robots")
    story.claim()
    strict = {KAI_PREEMPTIBILITY: "non-preemptible"}
    story.change_queue(vision, {"resources": [{"deviceClass": story.name, "quota": 1}]})

    a_pod(story, "first", labels={KAI_QUEUE: vision, **strict})
    story.wait_bound("first")
    a_pod(story, "foreign", labels={KAI_QUEUE: robots, **strict})

    story.wait_refused("foreign", "ForeignNonPreemptible")
    story.wait_figures({vision: 1}, "usageNonPreemptible")


def test_a_pod_of_another_scheduler_is_refused_or_charged_once_it_runs(
    story: Story, vision: str, group: str, webhook: WebhookProcess
) -> None:
    story.claim()
    story.delete("pod", "probe")
    story.wait_figures({vision: 0})

    refused = story.refusal(partial(a_pod, story, "kais", annotations=GROUP, **ELSEWHERE))
    with admission.other_flags(webhook, KEY, "--other-schedulers=Allow", usual=[KEY]):
        a_pod(story, "kais", annotations=GROUP, **ELSEWHERE)

    assert 'which scheduler "default-scheduler" does not check. Use "moorage".' in refused
    story.wait_bound("kais")
    story.wait_figures({vision: 1})
    story.delete("pod", "kais")
    story.wait_figures({vision: 0})
