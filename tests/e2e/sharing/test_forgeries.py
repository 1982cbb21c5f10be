"""Nobody but the binder says whose a claim is, and nobody says it of a pod."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from tests.e2e.sharing.objects import OWNER_POD, PREEMPTIBILITY, QUEUE
from tests.e2e.sharing.stories import CLAIM, NODE, Story

EACH_PART = pytest.mark.parametrize("part", ["", "/status"])


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


def test_the_owner_of_a_claim_is_not_changed_by_a_user(told: tuple[Story, str, str]) -> None:
    story, _, robots = told

    refusal = story.refusal(lambda: story.patch("claim", CLAIM, _labels({QUEUE: robots})))

    assert "never changes" in refusal


def test_the_owner_of_a_claim_is_not_removed_by_a_user(told: tuple[Story, str, str]) -> None:
    story, _, _ = told

    refusal = story.refusal(lambda: story.patch("claim", CLAIM, _labels({QUEUE: None})))

    assert "only by system:serviceaccount:moorage-system:scheduler-plugin" in refusal


def test_the_owner_pod_of_a_claim_is_not_forged(told: tuple[Story, str, str]) -> None:
    story, _, _ = told
    forged = _annotations({OWNER_POD: story.uid("pod", "first")[::-1]})

    refusal = story.refusal(lambda: story.patch("claim", CLAIM, forged))

    assert OWNER_POD in refusal


@EACH_PART
def test_the_queue_that_a_bound_pod_counts_for_is_not_forged(
    told: tuple[Story, str, str], part: str
) -> None:
    story, _, robots = told

    forged = _annotations({QUEUE: robots})

    refusal = story.refusal(lambda: story.patch("pod", "first", forged, part))

    assert "written only by" in refusal


@EACH_PART
@pytest.mark.parametrize("key", [PREEMPTIBILITY, "kai.scheduler/preemptibility"])
def test_a_pod_does_not_become_preemptible_or_the_opposite_after_its_bind(
    told: tuple[Story, str, str], key: str, part: str
) -> None:
    story, _, _ = told

    flipped = _labels({key: "non-preemptible"})

    refusal = story.refusal(lambda: story.patch("pod", "first", flipped, part))

    assert f"{key} cannot be added, changed or removed" in refusal


@pytest.mark.parametrize("door", ["pods/second/binding", "bindings"])
@pytest.mark.parametrize("field", ["labels", "annotations"])
def test_a_binding_does_not_smuggle_a_queue_in(
    told: tuple[Story, str, str], door: str, field: str
) -> None:
    story, _, robots = told
    story.plain_pod("second", schedulerName="nobody")
    path = f"/api/v1/namespaces/{story.namespace}/{door}"
    binding = {
        "apiVersion": "v1",
        "kind": "Binding",
        "metadata": {"name": "second", field: {QUEUE: robots}},
        "target": {"apiVersion": "v1", "kind": "Node", "name": NODE},
    }

    refusal = story.refusal(lambda: story.api.create(path, binding))

    assert "comes only from" in refusal
    assert story.node_of("second") == ""


def _labels(labels: dict[str, Any]) -> dict[str, Any]:
    return {"metadata": {"labels": labels}}


def _annotations(annotations: dict[str, Any]) -> dict[str, Any]:
    return {"metadata": {"annotations": annotations}}
