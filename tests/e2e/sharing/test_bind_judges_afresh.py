"""What a pod has reserved itself, or a user wrote on its claim, is no way past a limit."""

from __future__ import annotations

import pytest

from tests.e2e.sharing.objects import QUEUE
from tests.e2e.sharing.stories import CLAIM, NODE, Story

NON_PREEMPTIBLE = "non-preemptible"


def _limited(story: Story, limit: int, quota: int = 0) -> dict[str, object]:
    return {"resources": [{"deviceClass": story.name, "quota": quota, "limit": limit}]}


def test_the_first_pod_of_a_labelled_claim_is_asked_about_a_limit_lowered_since_its_filter(
    hasty: Story,
) -> None:
    """The label counts as soon as kube-scheduler allocates, which is before the Bind."""
    story = hasty
    vision = story.queue("vision", limit=1)
    story.devices(1)
    story.claim(labels={QUEUE: vision})
    with story.holding("bind", "first"):
        story.pod("first", vision)
        story.until("it is about to be bound", lambda: story.is_held("bind", "first"))
        story.wait_figures({vision: 1})
        story.change_queue(vision, _limited(story, 0))

    sentence = story.wait_refused("first", "OverLimit")
    assert f'queue "{vision}" uses 0 {story.name}, 1 more' in sentence
    assert story.node_of("first") == ""
    assert story.owner() == vision, "the label is the user's"
    story.wait_figures({vision: 0})
    story.change_queue(vision, _limited(story, 1))
    story.wait_bound("first")
    story.wait_figures({vision: 1})


EXCLUDING: dict[str, dict[str, object]] = {
    "selector": {"namespaceSelector": {"matchLabels": {"team": "victims"}}},
    "label": {"claimSharing": {"labelAtCreate": "Deny"}},
}


@pytest.mark.parametrize("change", list(EXCLUDING))
def test_a_queue_is_not_charged_for_a_labelled_claim_of_a_namespace_that_it_excludes(
    hasty: Story, change: str
) -> None:
    """Whatever admitted the claim; at the Bind, and at every Filter after it."""
    story = hasty
    victim, robots = story.queue("victim"), story.queue("robots")
    story.devices(1)
    story.claim(labels={QUEUE: victim})
    with story.holding("bind", "thief"):
        story.pod("thief", robots)
        story.until("it is about to be bound", lambda: story.is_held("bind", "thief"))
        story.change_queue(victim, EXCLUDING[change])

    sentence = story.wait_refused("thief", "QueueNotAllowed")
    assert f'{story.namespace}/{CLAIM} is labelled with queue "{victim}"' in sentence
    story.pod("other", robots)
    assert story.wait_refused("other", "QueueNotAllowed")
    assert story.bound() == set()
    story.wait_figures({victim: 0, robots: 0})


def test_a_non_preemptible_pod_that_joins_is_asked_about_a_quota_lowered_since_its_filter(
    story: Story,
) -> None:
    vision = story.queue("vision", quota=1, limit=1)
    story.devices(1)
    story.claim()
    story.pod("first", vision)
    story.wait_bound("first")
    with story.holding("bind", "second"):
        story.pod("second", vision, preemptibility=NON_PREEMPTIBLE)
        story.until("it is about to be bound", lambda: story.is_held("bind", "second"))
        story.wait_figures({vision: 1}, "usageNonPreemptible")
        story.change_queue(vision, _limited(story, 1, quota=0))

    story.wait_refused("second", "NonPreemptibleOverQuota")
    assert story.node_of("second") == ""
    story.wait_figures({vision: 0}, "usageNonPreemptible")
    story.wait_figures({vision: 1})


def test_a_claim_that_the_plugin_does_not_know_does_not_cost_nothing(story: Story) -> None:
    """kube-scheduler asks only when it knows the claim; so it is asked for it here."""
    vision = story.queue("vision")
    story.devices(1)
    story.pod("early", vision)
    asked = {"Pod": story.get("pod", "early"), "NodeNames": [NODE]}

    def answer() -> str:
        return str(story.extender.ask("filter", asked)["FailedAndUnresolvableNodes"][NODE])

    assert answer().startswith("NotKnownYet: ")
    story.until("one read told that there is none", lambda: answer().startswith("ClaimNotFound: "))
    assert story.extender.ask(
        "preempt", {"Pod": asked["Pod"], "NodeNameToMetaVictims": {NODE: {"Pods": []}}}
    ) == {"NodeNameToMetaVictims": {}}
    story.claim()
    story.wait_bound("early")
    story.wait_figures({vision: 1})
