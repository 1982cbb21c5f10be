"""Whose a claim is, and for how long."""

from __future__ import annotations

import pytest

from tests.e2e.sharing.objects import OWNER_POD, QUEUE
from tests.e2e.sharing.stories import CLAIM, Story


def test_the_queue_of_the_first_binder_owns_and_a_foreign_pod_is_charged_nothing(
    story: Story,
) -> None:
    vision, robots = story.queue("vision", limit=1), story.queue("robots", limit=1)
    story.devices(1)
    story.claim()
    story.pod("first", vision)
    story.wait_bound("first")

    story.pod("foreign", robots)

    story.wait_bound("foreign")
    story.wait_shared_out(vision)
    assert story.owner() == vision
    assert story.owner_pod() == story.uid("pod", "first")
    story.wait_figures({vision: 1, robots: 0})
    annotations = story.get("pod", "foreign")["metadata"]["annotations"]
    assert annotations[QUEUE] == robots


def test_pods_of_the_owner_share_free_of_charge(story: Story) -> None:
    vision = story.queue("vision", limit=1)
    story.devices(1)
    story.claim()
    pods = [f"sharer-{number}" for number in range(5)]

    for pod in pods:
        story.pod(pod, vision)

    story.wait_bound(*pods)
    story.wait_figures({vision: 1})
    status = story.status(vision)
    assert (status["claims"]["owned"], status["claims"]["sharedOut"]) == (1, 0)


def test_a_label_set_at_creation_wins_over_the_first_binder_and_stays(story: Story) -> None:
    vision, robots = story.queue("vision"), story.queue("robots", limit=0)
    story.devices(1)
    story.claim(labels={QUEUE: vision})
    story.pod("foreign", robots)

    story.wait_bound("foreign")

    story.wait_figures({vision: 1, robots: 0})
    assert (story.owner(), story.owner_pod()) == (vision, "")
    story.delete("pod", "foreign")
    story.until("the claim is deallocated", lambda: not story.is_allocated())
    story.wait_figures({vision: 0})
    assert story.owner() == vision


def test_an_owner_ends_with_the_allocation_and_the_next_binder_owns(story: Story) -> None:
    vision, robots = story.queue("vision"), story.queue("robots")
    story.devices(1)
    story.claim()
    story.pod("first", vision)
    story.wait_bound("first")
    story.delete("pod", "first")
    story.wait_owner("")
    assert story.owner_pod() == ""

    story.pod("next", robots)

    story.wait_bound("next")
    assert (story.owner(), story.owner_pod()) == (robots, story.uid("pod", "next"))
    story.wait_figures({vision: 0, robots: 1})


def test_an_owner_stays_for_the_life_of_the_claim_where_that_is_the_setting(story: Story) -> None:
    vision, robots = story.queue("vision"), story.queue("robots")
    story.devices(1)
    story.claim()
    with story.plugin.started_with("--owner-lifetime", "Claim"):
        story.pod("first", vision)
        story.wait_bound("first")
        story.delete("pod", "first")
        story.wait_figures({vision: 0})

        story.pod("next", robots)

        story.wait_bound("next")
        story.wait_figures({vision: 1, robots: 0})
        assert story.owner() == vision


def test_the_owner_is_charged_for_as_long_as_a_foreign_pod_outlives_its_own(
    story: Story,
) -> None:
    vision, robots = story.queue("vision"), story.queue("robots")
    story.devices(1)
    story.claim()
    story.pod("first", vision)
    story.wait_bound("first")
    story.pod("foreign", robots)
    story.wait_bound("foreign")
    story.wait_shared_out(vision)

    story.delete("pod", "first")

    story.until("one consumer is left", lambda: story.consumers() == ["foreign"])
    story.wait_figures({vision: 1, robots: 0})
    assert story.owner() == vision
    story.delete("pod", "foreign")
    story.wait_figures({vision: 0, robots: 0})
    story.wait_owner("")


@pytest.mark.parametrize("phase", ["Succeeded", "Failed"])
def test_finished_pods_free_a_shared_claim_with_the_last_of_them(story: Story, phase: str) -> None:
    vision, robots = story.queue("vision"), story.queue("robots")
    story.devices(1)
    story.claim()
    story.pod("first", vision)
    story.wait_bound("first")
    story.pod("foreign", robots)
    story.wait_bound("foreign")

    story.patch("pod", "first", {"status": {"phase": phase}}, "/status")

    story.until("one consumer is left", lambda: story.consumers() == ["foreign"])
    story.wait_figures({vision: 1, robots: 0})
    assert story.owner() == vision
    story.patch("pod", "foreign", {"status": {"phase": phase}}, "/status")
    story.wait_figures({vision: 0, robots: 0})
    story.wait_owner("")


def test_a_claim_deleted_and_made_anew_under_its_name_has_an_owner_of_its_own(
    story: Story,
) -> None:
    vision, robots = story.queue("vision"), story.queue("robots")
    story.devices(1)
    story.claim()
    story.pod("first", vision)
    story.wait_bound("first")
    story.delete("pod", "first")
    story.delete("claim", CLAIM)

    story.claim()
    story.pod("second", robots)

    story.wait_bound("second")
    story.wait_figures({vision: 0, robots: 1})
    assert (story.owner(), story.owner_pod()) == (robots, story.uid("pod", "second"))


def test_a_template_gives_each_pod_a_claim_of_its_own_and_each_is_charged(story: Story) -> None:
    vision = story.queue("vision", limit=2)
    story.devices(4)
    story.template("own")
    for pod in ("first", "second", "third"):
        story.pod(pod, vision, templates=["own"])

    refused = story.until("one is refused", lambda: _refused(story))

    story.until("two are bound", lambda: len(story.bound()) == 2)
    assert f'queue "{vision}"' in refused
    story.wait_figures({vision: 2})
    claims = [claim for claim in story.all("claim") if claim["metadata"].get("labels")]
    assert [claim["metadata"]["labels"][QUEUE] for claim in claims] == [vision, vision]
    assert all(OWNER_POD in claim["metadata"]["annotations"] for claim in claims)


def _refused(story: Story) -> str:
    found = (story.refused(pod, "OverLimit: ") for pod in ("first", "second", "third"))
    return next((sentence for sentence in found if sentence), "")
