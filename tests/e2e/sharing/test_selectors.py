"""One tenant's CEL selector, which the API server admits, holds up nobody else."""

from __future__ import annotations

import pytest

from tests.e2e.sharing import objects
from tests.e2e.sharing.stories import NODE, OTHER_NODE, Story
from tests.e2e.sharing.test_reclaim import RUNS, use

FORTY = f"[{','.join('1' for _ in range(40))}]"
NESTED = f"{FORTY}.map(a, {FORTY}.map(b, {FORTY}.map(c, true))).size() == 40"
"""As costly as the API server admits: a third of a second of CPU for each of the six devices."""
REGEX = f"!device.driver.matches('{'[a-z]{1,100}' * 800}')"
"""Like the other true, so that no device is spared the rest."""
HERE = {"kubernetes.io/hostname": NODE}
THERE = {"kubernetes.io/hostname": OTHER_NODE}


def told_slow(story: Story, pod: str) -> str:
    conditions = story.get("pod", pod)["status"].get("conditions", ())
    found = (c for c in conditions if c["type"] == "moorage.dev/SelectorsTooSlow")
    return next((str(c["message"]) for c in found if c["status"] == "True"), "")


def evaluated_in_vain(story: Story) -> int:
    """How often the plugin gave an expression up; its log outlives its process."""
    return story.plugin.handle.logs().count("CEL takes too long")


def times_started(story: Story) -> int:
    return story.plugin.handle.logs().count("listening host=")


@pytest.mark.parametrize("selectors", [[NESTED], [REGEX, NESTED] * 16], ids=["one", "many"])
def test_others_are_scheduled_and_the_plugin_lives_while_a_tenants_selector_is_evaluated(
    story: Story, selectors: list[str]
) -> None:
    mine, robots = story.queue("mine", quota=1), story.queue("robots", quota=0)
    others = story.queue("others", quota=5)
    story.devices(1)
    story.devices(5, node=OTHER_NODE)
    use(story, "r1", robots, nodeSelector=HERE, labels={"app": "guarded"})
    story.patch("pod", "r1", {"status": RUNS}, "/status")
    story.create("budget", objects.budget("some", {"app": "guarded"}, at_least=1))
    starts = times_started(story)

    story.claim("w", selectors=selectors)
    story.pod("w", mine, "w", nodeSelector=HERE)
    for number in range(5):
        story.claim(f"n{number}")
        story.pod(f"n{number}", others, f"n{number}", nodeSelector=THERE)

    story.wait_bound(*(f"n{number}" for number in range(5)))
    digests = story.until("the pod is told", lambda: told_slow(story, "w"))
    story.wait_told("w", "ReclaimHeldBack")
    assert (times_started(story), story.plugin.is_ready()) == (starts, True)
    assert "count as satisfied" in digests

    tries = evaluated_in_vain(story)
    story.plugin.kill()
    story.plugin.wait_ready()
    story.api.delete(story.path("budget", "some"))

    story.until("what may fit is taken back", lambda: "r1" not in story.bound())
    assert evaluated_in_vain(story) == tries, "the next process goes by the pod's condition"
