"""PodGroups that lose pods on the real cluster: what is left goes as one, unless they come back."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.e2e.sharing.plugin import Plugin
from tests.e2e.sharing.stories import Story
from tests.e2e.sharing.test_gangs import DEFINITION, a_group, members
from tests.e2e.test_policies import POD_GROUP_CRD

GRACE_SECONDS = "20"


@pytest.fixture(scope="module", autouse=True)
def groups_served(plugin: Plugin) -> Iterator[None]:
    """A cluster that has KAI's PodGroups, and a plugin with little patience."""
    plugin.cluster.apply(POD_GROUP_CRD)
    plugin.cluster.kubectl("wait", DEFINITION, "--for=condition=Established", "--timeout=30s")
    with plugin.started_with("--stale-gang-grace", GRACE_SECONDS):
        yield
        plugin.cluster.kubectl("delete", DEFINITION)


def is_stale(story: Story, *names: str) -> set[str]:
    """What the pods' conditions say; "" for nothing."""
    found = set()
    for name in names:
        conditions = story.get("pod", name)["status"].get("conditions", ())
        stale = [c["status"] for c in conditions if c["type"] == "moorage.dev/PodGroupStale"]
        found.add(stale[0] if stale else "")
    return found


def test_what_is_left_of_a_group_gives_its_devices_back_as_one(story: Story) -> None:
    vision = story.queue("vision", limit=3)
    story.devices(9)
    a_group(story, "crew", vision, 3)
    left = members(story, "crew", range(3))[:2]
    story.wait_bound(*left, "crew-2")

    story.delete("pod", "crew-2")
    story.delete("claim", "crew-2")
    story.until("those left are told", lambda: is_stale(story, *left) == {"True"})
    members(story, "crew", [3])
    story.wait_bound("crew-3")
    story.until("it is over", lambda: is_stale(story, *left) == {"False"})
    assert story.evictions() == []

    story.delete("pod", "crew-3")
    story.delete("claim", "crew-3")
    story.wait_figures({vision: 0})
    why = story.wait_told(left[0], "PodGroupGivenUp")
    assert why == story.wait_told(left[1], "PodGroupGivenUp")
    assert "has had 2 of the 3 pods that it needs since" in why
    assert story.wait_told("crew", "PodGroupGivenUp") == why
    assert "unless the group is complete by then" in story.wait_told("crew", "PodGroupStale")
