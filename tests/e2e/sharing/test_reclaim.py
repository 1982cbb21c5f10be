"""Quota is guaranteed: who is under it gets a claim of who is over it, and nobody slips in."""

from __future__ import annotations

from typing import Any

from tests.e2e.sharing import objects
from tests.e2e.sharing.stories import NODE, OTHER_NODE, Story

GATE = {"name": "moorage.dev/quota"}
CONDITION = "moorage.dev/Reclaiming"
RUNS = {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]}


def queues(story: Story, limit: int, mine: int = 1, robots: int = 0) -> tuple[str, str]:
    """Two queues below one with a limit."""
    root = story.queue("root", limit=limit, quota=limit)
    return (
        story.queue("mine", parent=root, quota=mine),
        story.queue("robots", parent=root, quota=robots),
    )


def use(story: Story, name: str, queue: str, *foreign: tuple[str, str], **options: Any) -> None:
    """A claim (of `count` devices) that a pod of its name uses, and foreign pods beside it."""
    story.claim(name, count=options.pop("count", 1))
    story.pod(name, queue, name, **options)
    story.wait_bound(name)
    for pod, other in foreign:
        story.pod(pod, other, name)
    story.wait_bound(*(pod for pod, _ in foreign))


def condition(story: Story, pod: str) -> tuple[str, str]:
    conditions = story.get("pod", pod)["status"].get("conditions", ())
    found = [(c["status"], c["message"]) for c in conditions if c["type"] == CONDITION]
    return found[0] if found else ("", "")


def evicted(story: Story, *pods: str) -> bool:
    return story.bound().isdisjoint(pods)


def test_a_queue_within_its_quota_gets_its_room_back_and_all_sides_are_told(story: Story) -> None:
    mine, robots = queues(story, limit=2)
    story.devices(2)
    use(story, "r1", robots)
    use(story, "r2", robots)

    story.claim("w")
    story.pod("w", mine, "w", schedulingGates=[GATE])

    story.wait_bound("w")
    (gone,) = {"r1", "r2"} - story.bound()
    why = story.wait_told(gone, "Reclaimed")
    assert f'Pod {story.namespace}/w of queue "{mine}" is within the share of ' in why
    assert f'ResourceClaim {story.namespace}/{gone} of queue "{robots}"' in why
    assert story.wait_told("w", "RoomReclaimed") == why
    story.wait_figures({mine: 1, robots: 1})
    story.until("nothing is held", lambda: not story.status(mine).get("held"))
    story.until("the hold is over", lambda: condition(story, "w")[0] == "False")


def test_the_evicted_pods_successor_does_not_slip_in(story: Story) -> None:
    mine, robots = queues(story, limit=2)
    story.devices(2)
    use(story, "r1", robots)
    use(story, "r2", robots)
    for number in range(3):
        story.claim(f"next{number}")
        story.pod(f"next{number}", robots, f"next{number}", schedulingGates=[GATE])

    story.claim("w")
    story.pod("w", mine, "w", schedulingGates=[GATE])

    story.wait_bound("w")
    story.wait_figures({mine: 1, robots: 1})
    assert len(story.bound() & {"r1", "r2"}) == 1
    assert not story.bound() & {"next0", "next1", "next2"}


def test_whoever_comes_back_does_not_join_the_claim_again_that_is_taken(story: Story) -> None:
    mine, robots = queues(story, limit=1)
    story.devices(1)
    use(story, "r1", robots, terminationGracePeriodSeconds=300)

    story.claim("w")
    story.pod("w", mine, "w", schedulingGates=[GATE])
    story.wait_told("r1", "Reclaimed")
    story.pod("next", robots, "r1")

    story.wait_refused("next", "DeviceHeld")
    assert story.bound() == {"r1"}
    story.delete("pod", "r1")
    story.wait_bound("w")


def test_a_pod_without_a_gate_is_served_as_well(story: Story) -> None:
    mine, robots = queues(story, limit=1)
    story.devices(2)
    use(story, "r1", robots)

    story.claim("w")
    story.pod("w", mine, "w")

    story.wait_bound("w")
    assert evicted(story, "r1")


def test_a_claim_goes_with_all_its_users_and_foreign_ones_only_where_no_other_serves(
    story: Story,
) -> None:
    mine, robots = queues(story, limit=2, mine=2)
    others = story.queue("others")
    story.devices(2)
    use(story, "shared", robots, ("f1", others), ("f2", others))
    use(story, "r2", robots)

    story.claim("w1")
    story.pod("w1", mine, "w1", schedulingGates=[GATE])
    story.wait_bound("w1")
    assert story.bound() == {"shared", "f1", "f2", "w1"}
    story.claim("w2")
    story.pod("w2", mine, "w2", schedulingGates=[GATE])

    story.wait_bound("w2")
    assert story.bound() == {"w1", "w2"}
    why = story.wait_told("f1", "Reclaimed")
    assert "is given up by all its users (3 pods)" in why
    assert story.wait_told("f2", "Reclaimed") == why
    assert story.wait_told("shared", "Reclaimed") == why


def test_a_budget_sends_it_to_the_next_and_where_none_can_go_the_queue_says_so(
    story: Story,
) -> None:
    mine, robots = queues(story, limit=2, mine=2)
    story.devices(2)
    use(story, "r1", robots)
    use(story, "guarded", robots, labels={"app": "guarded"})
    story.patch("pod", "guarded", {"status": RUNS}, "/status")
    story.create("budget", objects.budget("some", {"app": "guarded"}, at_least=1))
    story.until("the budget is in force", lambda: _is_in_force(story))

    story.claim("w1")
    story.pod("w1", mine, "w1", schedulingGates=[GATE])
    story.wait_bound("w1")
    story.claim("w2")
    story.pod("w2", mine, "w2", schedulingGates=[GATE])

    held_back = story.wait_told("w2", "ReclaimHeldBack")
    assert "needs 1 healthy pods and has 1 currently" in held_back
    story.until("the queue says so", lambda: "a budget" in unmet(story, mine))
    assert story.bound() == {"guarded", "w1"}
    story.api.delete(story.path("budget", "some"))
    story.wait_bound("w2")
    story.until("it has what it asks for", lambda: not unmet(story, mine))


def unmet(story: Story, queue: str) -> str:
    conditions = story.status(queue).get("conditions", ())
    return next((str(c["message"]) for c in conditions if c["type"] == "QuotaUnmet"), "")


def _is_in_force(story: Story) -> bool:
    status = story.get("budget", "some").get("status", {})
    return (status.get("expectedPods"), status.get("currentHealthy")) == (1, 1)


def test_within_a_queue_the_higher_priority_goes_first(story: Story) -> None:
    vision = story.queue("vision", quota=2, limit=2)
    story.devices(2)
    story.priority_class(50)
    use(story, "low", vision)
    use(story, "urgent", vision, priorityClassName=story.name)

    story.claim("w")
    story.pod("w", vision, "w", schedulingGates=[GATE], priorityClassName=story.name)

    story.wait_bound("w")
    assert story.bound() == {"urgent", "w"}
    assert "has priority 50" in story.wait_told("low", "Reclaimed")


def test_the_next_to_lead_finishes_what_was_begun(story: Story) -> None:
    mine, robots = queues(story, limit=1)
    others = story.queue("others")
    story.devices(1)
    use(story, "shared", robots, ("f1", others), ("f2", others))
    story.claim("w")
    with story.gates_stopped("w"):
        story.pod("w", mine, "w", schedulingGates=[GATE])
        story.until("all are evicted", lambda: evicted(story, "shared", "f1", "f2"))
        story.plugin.kill()
        story.claim("next")
        story.pod("next", robots, "next", schedulingGates=[GATE])
        story.plugin.wait_ready()

    story.wait_bound("w")
    assert story.bound() == {"w"}


def test_whoever_has_not_run_for_the_least_time_stays_until_then(story: Story) -> None:
    mine, robots = queues(story, limit=2)
    story.change_queue(robots, {"reclaimMinRuntime": "1h"})
    story.devices(2)
    use(story, "r1", robots)
    use(story, "r2", robots)

    story.claim("w")
    story.pod("w", mine, "w", schedulingGates=[GATE])

    story.until("the queue says so", lambda: "the minimum runtime" in unmet(story, mine))
    assert story.bound() == {"r1", "r2"}
    story.change_queue(robots, {"reclaimMinRuntime": "1s"})

    story.wait_bound("w")
    assert len(story.bound()) == 2


def test_a_device_is_taken_back_that_would_do_and_its_owners_next_pod_does_not_slip_in(
    story: Story,
) -> None:
    mine, robots = story.queue("mine", quota=1), story.queue("robots", quota=0)
    story.devices(2)
    use(story, "r1", robots)
    use(story, "r2", robots)
    for number in range(3):
        story.claim(f"next{number}")
        story.pod(f"next{number}", robots, f"next{number}")

    story.claim("w")
    story.pod("w", mine, "w")

    story.wait_bound("w")
    (gone,) = {"r1", "r2"} - story.bound()
    why = story.wait_told(gone, "Reclaimed")
    assert "which leaves it device" in why
    assert story.wait_told("w", "DeviceReclaimed") == why
    story.wait_figures({mine: 1, robots: 1})
    assert not story.bound() & {"next0", "next1", "next2"}
    story.until("the hold is over", lambda: condition(story, "w")[0] == "False")


def test_a_device_that_would_not_do_is_left_to_whoever_has_it(story: Story) -> None:
    mine, robots = story.queue("mine", quota=1), story.queue("robots", quota=0)
    story.devices(1)
    story.devices(1, node=OTHER_NODE)
    use(story, "r1", robots, nodeSelector={"kubernetes.io/hostname": NODE})
    use(story, "r2", robots, nodeSelector={"kubernetes.io/hostname": OTHER_NODE})

    story.claim("w")
    story.pod("w", mine, "w", nodeSelector={"kubernetes.io/hostname": OTHER_NODE})

    story.wait_bound("w")
    assert story.bound() == {"r1", "w"}
    assert story.node_of("w") == OTHER_NODE


def test_of_devices_that_have_to_agree_the_one_goes_that_agrees_with_what_is_free(
    story: Story,
) -> None:
    mine, robots = story.queue("mine", quota=2), story.queue("robots", quota=0)
    story.devices(3, numa=[0, 1, 1])
    story.priority_class(50)
    use(story, "r0", robots)
    use(story, "r1", robots, priorityClassName=story.name)
    assert (devices_of(story, "r0"), devices_of(story, "r1")) == ({"device-0"}, {"device-1"})

    story.claim("w", count=2, match=f"{story.driver}/numa")
    story.pod("w", mine, "w")

    story.wait_bound("w")
    assert story.bound() == {"r0", "w"}
    assert devices_of(story, "w") == {"device-1", "device-2"}
    assert "device-1" in story.wait_told("r1", "Reclaimed")
    story.wait_figures({mine: 2, robots: 1})


def test_all_devices_of_a_node_are_taken_back_where_all_are_asked_for(story: Story) -> None:
    mine, robots = story.queue("mine", quota=2), story.queue("robots", quota=0)
    story.devices(2)
    story.devices(1, node=OTHER_NODE)
    use(story, "r0", robots, nodeSelector={"kubernetes.io/hostname": NODE})
    use(story, "far", robots, nodeSelector={"kubernetes.io/hostname": OTHER_NODE})

    story.claim("w", count=None)
    story.pod("w", mine, "w", nodeSelector={"kubernetes.io/hostname": NODE})

    story.wait_bound("w")
    assert story.bound() == {"far", "w"}
    assert devices_of(story, "w") == {"device-0", "device-1"}
    story.wait_figures({mine: 2, robots: 1})


def test_what_turns_out_not_to_be_needed_stays(story: Story) -> None:
    """Pods go in order until it is enough; with the last of them the first ones are not needed."""
    mine, robots = story.queue("mine", quota=5), story.queue("robots", quota=0)
    story.devices(7)
    story.priority_class(50)
    use(story, "r0", robots, count=2)
    use(story, "r1", robots)
    use(story, "r2", robots)
    use(story, "urgent", robots, count=3, priorityClassName=story.name)

    story.claim("w", count=5)
    story.pod("w", mine, "w")

    story.wait_bound("w")
    assert story.bound() == {"r0", "w"}
    story.wait_figures({mine: 5, robots: 2})


def test_what_of_a_set_is_free_is_kept_until_the_rest_is_whoever_leads(story: Story) -> None:
    mine, robots = story.queue("mine", quota=2), story.queue("robots", quota=0)
    others = story.queue("others", quota=0)
    story.devices(2)
    use(story, "quick", robots)
    use(story, "slow", robots, terminationGracePeriodSeconds=300)
    story.claim("w", count=2)
    story.pod("w", mine, "w")
    story.until("one is gone", lambda: evicted(story, "quick"))
    story.wait_told("slow", "Reclaimed")

    story.claim("next")
    story.pod("next", others, "next")
    story.wait_refused("next", "DeviceHeld")
    story.plugin.kill()
    story.plugin.wait_ready()
    story.claim("later")
    story.pod("later", others, "later")
    story.wait_refused("later", "DeviceHeld")
    assert story.bound() == {"slow"}
    story.delete("pod", "slow")

    story.wait_bound("w")
    assert story.bound() == {"w"}
    story.wait_figures({mine: 2, robots: 0})


def devices_of(story: Story, claim: str) -> set[str]:
    allocation = story.get("claim", claim)["status"]["allocation"]
    return {result["device"] for result in allocation["devices"]["results"]}
