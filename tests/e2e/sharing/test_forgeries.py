"""Nobody but the binder says whose a claim is, and nobody says it of a pod."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from itertools import product
from typing import Any

import pytest

from tests.e2e.sharing import objects
from tests.e2e.sharing.objects import OWNER_POD, PREEMPTIBILITY, QUEUE, SCHEDULER
from tests.e2e.sharing.stories import CLAIM, NODE, Story

KAI_PREEMPTIBILITY = "kai.scheduler/preemptibility"


@pytest.fixture
def told(story: Story) -> Iterator[tuple[Story, str, str]]:
    """A pod of the first queue that runs on a claim of its own; a second queue."""
    vision, robots = story.queue("vision"), story.queue("robots")
    story.devices(1)
    story.claim()
    story.pod("first", vision)
    story.wait_bound("first")
    yield story, vision, robots
    assert story.owner() == vision
    story.wait_figures({vision: 1, robots: 0})


def test_what_the_binder_wrote_on_a_claim_is_not_changed_nor_removed_by_a_user(
    told: tuple[Story, str, str],
) -> None:
    story, _, robots = told
    forgeries = {
        "never changes": _labels({QUEUE: robots}),
        "only by system:serviceaccount:moorage-system:scheduler-plugin": _labels({QUEUE: None}),
        f"{OWNER_POD} is written only by": _annotations({OWNER_POD: "forged"}),
    }

    for words, forged in forgeries.items():
        refusal = story.refusal(partial(story.patch, "claim", CLAIM, forged))

        assert words in refusal


def test_neither_the_queue_nor_the_preemptibility_of_a_bound_pod_is_changed(
    told: tuple[Story, str, str],
) -> None:
    story, _, robots = told
    forgeries = {
        "written only by": _annotations({QUEUE: robots}),
        f"label {QUEUE} cannot be": _labels({QUEUE: robots}),
        f"{PREEMPTIBILITY} cannot be": _labels({PREEMPTIBILITY: "non-preemptible"}),
        f"{KAI_PREEMPTIBILITY} cannot be": _labels({KAI_PREEMPTIBILITY: "preemptible"}),
    }

    for part, (words, forged) in product(("", "/status"), forgeries.items()):
        refusal = story.refusal(partial(story.patch, "pod", "first", forged, part))

        assert words in refusal


def test_nobody_is_created_with_what_only_the_binder_writes(told: tuple[Story, str, str]) -> None:
    story, _, robots = told
    claim, pod = objects.claim("forged", story.name), objects.pod("forged")
    claim["metadata"]["annotations"] = {OWNER_POD: story.uid("pod", "first")}
    pod["metadata"]["annotations"] = {QUEUE: robots}

    for kind, value in (("claim", claim), ("pod", pod)):
        refusal = story.refusal(partial(story.create, kind, value))

        assert "is refused at creation" in refusal


def test_a_binding_does_not_smuggle_a_queue_in(told: tuple[Story, str, str]) -> None:
    story, _, robots = told
    story.plain_pod("second", schedulerName="nobody")

    for door, field in product(("pods/second/binding", "bindings"), ("labels", "annotations")):
        path = f"/api/v1/namespaces/{story.namespace}/{door}"
        binding = objects.binding("second", NODE, **{field: {QUEUE: robots}})

        refusal = story.refusal(partial(story.api.create, path, binding))

        assert "comes only from" in refusal
    assert story.node_of("second") == ""


def test_who_reaches_the_extender_binds_no_pod_of_another_scheduler(
    told: tuple[Story, str, str],
) -> None:
    """Whatever he says to Filter of the pod, in a version that nobody knows."""
    story, _, robots = told
    story.plain_pod("second", schedulerName="nobody")
    story.pod("third", robots, CLAIM, schedulerName="nobody")

    for name in ("second", "third"):
        pod = story.get("pod", name)
        spec = {**pod["spec"], "schedulerName": SCHEDULER, "resourceClaims": []}
        said = {**pod, "metadata": {**pod["metadata"], "resourceVersion": "1"}, "spec": spec}
        passed = story.extender.ask("filter", {"Pod": said, "NodeNames": [NODE]})
        uid = pod["metadata"]["uid"]
        bind = {"PodName": name, "PodNamespace": story.namespace, "PodUID": uid, "Node": NODE}
        refused = story.extender.ask("bind", bind)

        assert passed["NodeNames"] == [NODE]
        assert 'spec.schedulerName: is "nobody"' in refused["Error"]
        assert story.node_of(name) == ""


def test_who_reads_the_pages_of_the_plugin_binds_nothing(told: tuple[Story, str, str]) -> None:
    story, _, _ = told

    assert "404" in story.plugin.page("/bind", "{}")
    assert story.plugin.page("/healthz") == "ok"


def _labels(labels: dict[str, Any]) -> dict[str, Any]:
    return {"metadata": {"labels": labels}}


def _annotations(annotations: dict[str, Any]) -> dict[str, Any]:
    return {"metadata": {"annotations": annotations}}
