"""Queue A exits, and queue B's pod holds the device: kept, or evicted as one set."""

from __future__ import annotations

from typing import Any

from tests.e2e.sharing import objects
from tests.e2e.sharing.objects import EVICT_FOREIGN
from tests.e2e.sharing.stories import CLAIM, OTHER_NODE, Story

EVICT_SOON = {"onOwnerExit": "Evict", "ownerExitGracePeriod": "1s"}
RUNS = {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]}


def shared(story: Story, sharing: dict[str, Any], *foreign: str) -> tuple[str, str]:
    """Pod `first` of vision owns the claim of the only device; foreign pods of robots join."""
    vision, robots = story.queue("vision", claimSharing=sharing), story.queue("robots")
    story.devices(1)
    story.claim()
    story.pod("first", vision)
    story.wait_bound("first")
    for pod in foreign:
        story.pod(pod, robots, labels={"app": "foreign"})
    story.wait_bound(*foreign)
    story.wait_shared_out(vision)
    return vision, robots


def test_where_foreign_pods_are_kept_the_owner_stays_charged_and_may_change_its_mind(
    story: Story,
) -> None:
    vision, robots = shared(story, {}, "foreign")

    story.delete("pod", "first")

    left_at = story.until("the time of leaving is noted", story.left_at)
    assert story.wait_told(CLAIM, "OwnerLeft").endswith(
        "They keep it, and the queue stays charged."
    )
    story.plugin.restart()
    story.wait_figures({vision: 1, robots: 0})
    assert (story.left_at(), story.owner(), story.bound()) == (left_at, vision, {"foreign"})

    story.change_queue(vision, {"claimSharing": EVICT_SOON})

    story.until("the foreign pod is evicted", lambda: not story.bound())
    story.wait_figures({vision: 0, robots: 0})
    story.wait_owner("")
    assert story.left_at() == ""


def test_where_they_are_evicted_all_go_as_one_set_and_the_owners_next_pod_has_the_device(
    story: Story,
) -> None:
    vision, _ = shared(story, EVICT_SOON, "foreign-1", "foreign-2")
    story.pod("second", vision)
    story.wait_bound("second")

    story.delete("pod", "first")
    story.wait_figures({vision: 1})
    assert (story.left_at(), story.bound()) == ("", {"foreign-1", "foreign-2", "second"})
    story.delete("pod", "second")

    # A pod of the queue that waited meanwhile would take the device by itself.
    why = story.wait_told("foreign-2", "ForeignPodEvicted")
    assert f'belongs to queue "{vision}", whose last pod stopped using it at' in why
    assert f'Queue "{vision}" has onOwnerExit: Evict' in why
    assert story.wait_told("foreign-1", "ForeignPodEvicted") == why
    assert story.wait_told(CLAIM, "ForeignPodsEvicted") == why
    story.claim("another")
    story.pod("next", vision, "another")
    story.wait_bound("next")
    assert story.bound() == {"next"}
    story.wait_figures({vision: 1})


def test_an_owners_pod_that_comes_back_within_the_grace_saves_the_foreign_ones(
    story: Story,
) -> None:
    sharing = {"onOwnerExit": "Evict", "ownerExitGracePeriod": "1h"}
    vision, robots = shared(story, sharing, "foreign")
    story.devices(1, node=OTHER_NODE)
    story.claim("lost")
    story.pod("of-lost", vision, "lost")
    story.wait_bound("of-lost")
    story.pod("unlucky", robots, "lost")
    story.wait_bound("unlucky")
    story.delete("pod", "first")
    story.delete("pod", "of-lost")
    story.until("both have left", lambda: story.left_at() and story.left_at("lost"))

    story.pod("back", vision)
    story.wait_bound("back")
    story.until("the time of leaving is removed", lambda: not story.left_at())
    story.change_queue(vision, {"claimSharing": EVICT_SOON})

    story.until("the other is evicted", lambda: "unlucky" not in story.bound())
    assert story.bound() == {"foreign", "back"}
    assert story.told("foreign", "ForeignPodEvicted") == ""


def test_a_claims_annotation_asks_in_vain_where_its_owner_denies_that_or_a_budget_does(
    story: Story,
) -> None:
    denied = {"evictForeign": "Deny", "ownerExitGracePeriod": "1s"}
    vision, _ = shared(story, denied, "foreign", "guarded")
    story.patch("pod", "guarded", {"metadata": {"labels": {"app": "guarded"}}})
    story.patch("pod", "guarded", {"status": RUNS}, "/status")
    story.create("budget", objects.budget("some", {"app": "guarded"}, at_least=1))
    story.until("the budget is in force", lambda: _is_in_force(story))
    story.patch("claim", CLAIM, {"metadata": {"annotations": {EVICT_FOREIGN: "true"}}})
    story.delete("pod", "first")
    story.until("the time of leaving is noted", story.left_at)

    story.change_queue(vision, {"claimSharing": {"evictForeign": "Allow"}})

    told = story.wait_told(CLAIM, "EvictionHeldBack")
    assert "The claim asks for it by its annotation" in told
    assert "needs 1 healthy pods and has 1 currently" in told
    assert story.bound() == {"foreign", "guarded"}
    story.api.delete(story.path("budget", "some"))
    story.until("both are evicted", lambda: not story.bound())


def _is_in_force(story: Story) -> bool:
    status = story.get("budget", "some").get("status", {})
    return (status.get("expectedPods"), status.get("currentHealthy")) == (1, 1)
