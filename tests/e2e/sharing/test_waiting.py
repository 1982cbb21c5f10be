"""Pods that wait at their gate for quota: who goes, when, and what the others are told."""

from __future__ import annotations

import json
from typing import Any

from tests.e2e.sharing.kube_scheduler import has_given_up
from tests.e2e.sharing.objects import BINDER
from tests.e2e.sharing.stories import CLAIM, Story

GATE = {"name": "moorage.dev/quota"}
CONDITION = "moorage.dev/Admitted"


def a_waiting_pod(story: Story, name: str, queue: str, **options: Any) -> None:
    """A pod with the gate and a claim of its own, as the webhook would make it."""
    story.claim(name)
    story.pod(name, queue, name, schedulingGates=[GATE], **options)


def is_gated(story: Story, pod: str) -> bool:
    return bool(story.get("pod", pod)["spec"].get("schedulingGates"))


def told(story: Story, pod: str) -> str:
    """Reason and message of the condition that says what a pod waits for; "" without one."""
    conditions = story.get("pod", pod)["status"].get("conditions", ())
    found = [f"{c['reason']}: {c['message']}" for c in conditions if c["type"] == CONDITION]
    return found[0] if found else ""


def wait_told(story: Story, pod: str, words: str) -> str:
    def is_told() -> str:
        said = told(story, pod)
        return said if words in said else ""

    return story.until(f'{pod} is told "{words}"', is_told)


def times_told(story: Story, pod: str, reason: str = "") -> int:
    """How often the plugin wrote a pod's condition, with this reason or with any."""
    return sum(
        (entry["verb"], entry["user"]["username"]) == ("patch", BINDER)
        and (entry["objectRef"].get("subresource"), entry["objectRef"].get("name"))
        == ("status", pod)
        and entry["responseStatus"]["code"] == 200
        and reason in json.dumps(entry["requestObject"])
        for entry in story.audited()
    )


def test_no_more_go_than_fit_and_the_others_ask_for_nothing(story: Story) -> None:
    vision = story.queue("vision", limit=2)
    story.devices(9)
    for number in range(5):
        a_waiting_pod(story, f"p{number}", vision)
    story.template("made")
    story.pod("p5", vision, templates=["made"], schedulingGates=[GATE])
    story.plain_pod("unconcerned", schedulingGates=[GATE])

    story.wait_bound("p0", "p1", "unconcerned")
    sentence = wait_told(story, "p4", "OverLimit: ")
    wait_told(story, "p5", "OverLimit: ")
    assert f'queue "{vision}" uses 2' in sentence
    assert [is_gated(story, f"p{number}") for number in range(6)] == [False] * 2 + [True] * 4
    place = json.loads(story.plugin.page(f"/waiting/{story.namespace}/p4"))
    assert (place["place"], place["waiting"], place["queue"]) == (3, 4, vision)
    assert place["reason"] == "OverLimit"
    assert "404" in story.plugin.page(f"/waiting/{story.namespace}/p0")

    story.delete("pod", "p0")
    story.delete("claim", "p0")
    story.wait_bound("p2")
    story.change_queue(vision, {"resources": [{"deviceClass": story.name, "limit": 4}]})
    story.wait_bound("p3", "p4")

    assert is_gated(story, "p5")
    assert [times_told(story, "p5", "OverLimit"), times_told(story, "p0")] == [1, 0]
    assert story.extender.calls("filter", story.key("p5")) == []
    story.until("who went says nothing any more", lambda: not told(story, "p4"))
    story.wait_figures({vision: 4})


def test_kubectl_describe_says_what_a_gated_pod_waits_for(story: Story) -> None:
    """One Event of the API server's for each reason, whatever the figures do meanwhile."""
    vision = story.queue("vision", limit=1)
    story.devices(3)
    a_waiting_pod(story, "first", vision)
    story.wait_bound("first")
    a_waiting_pod(story, "second", vision)

    note = story.wait_told("second", "OverLimit")
    spoken = story.cluster.kubectl("describe", "pod", "second", "--namespace", story.namespace)

    begin = f"The pod waits at its scheduling gate. ResourceClaim {story.key('second')} does not"
    assert note.startswith(begin)
    assert begin in spoken.stdout
    story.change_queue(vision, {"resources": [{"deviceClass": story.name, "limit": 0}]})
    story.wait_figures({vision: 2}, "requested")
    regarding = [event["involvedObject"]["name"] for event in story.all("event")]
    assert (regarding.count("second"), story.told("first", "OverLimit")) == (1, "")


def test_the_furthest_under_its_quota_goes_first_then_priority_then_age(story: Story) -> None:
    story.priority_class(7)
    root = story.queue("root", limit=0)
    left = story.queue("left", parent=root, quota=4)
    right = story.queue("right", parent=root, quota=2)
    story.devices(9)
    for number in range(3):
        a_waiting_pod(story, f"left-{number}", left)
        a_waiting_pod(story, f"right-{number}", right)
    a_waiting_pod(story, "urgent", left, priorityClassName=story.name)
    for pod in ("left-2", "right-2", "urgent"):
        wait_told(story, pod, "OverLimit: ")

    story.change_queue(root, {"resources": [{"deviceClass": story.name, "limit": 3}]})

    story.wait_bound("urgent", "right-0", "left-0")
    waiting = {"left-1", "left-2", "right-1", "right-2"}
    assert {pod for pod in waiting if is_gated(story, pod)} == waiting
    story.wait_figures({root: 3, left: 2, right: 1})


def test_who_leaves_the_line_leaves_no_trace(story: Story) -> None:
    vision = story.queue("vision", limit=1)
    story.devices(9)
    a_waiting_pod(story, "first", vision)
    story.wait_bound("first")
    for pod in ("deleted", "freed", "last"):
        a_waiting_pod(story, pod, vision)
        wait_told(story, pod, "OverLimit: ")

    story.delete("pod", "deleted")
    story.patch("pod", "freed", {"spec": {"schedulingGates": None}})

    story.wait_refused("freed", "OverLimit")
    story.until("it says nothing of the gate", lambda: not told(story, "freed"))
    place = json.loads(story.plugin.page(f"/waiting/{story.namespace}/last"))
    assert (place["place"], place["waiting"]) == (2, 2), "a refused pod is in the queue, too"
    story.delete("pod", "freed")
    story.delete("pod", "first")
    story.wait_bound("last")
    story.wait_figures({vision: 1})


def test_killed_between_decision_and_removal_it_decides_anew_and_nobody_starves(
    story: Story,
) -> None:
    vision = story.queue("vision", limit=1)
    story.devices(9)
    with story.gates_stopped("first") as gate:
        a_waiting_pod(story, "first", vision)
        story.until("its gate is being removed", lambda: "first" in gate.stopped)
        a_waiting_pod(story, "second", vision)
        story.plugin.kill()
        gate.refuse()
        story.plugin.wait_ready()

        story.wait_bound("second")

        wait_told(story, "first", "OverLimit: ")
        assert is_gated(story, "first")
        story.wait_figures({vision: 1})
    story.delete("pod", "second")
    story.delete("claim", "second")
    story.wait_bound("first")


def test_a_removal_that_hangs_at_a_webhook_keeps_no_other_pod_waiting(story: Story) -> None:
    """The call is lost, and the API server answers others: it is not away."""
    vision = story.queue("vision", limit=3)
    story.devices(9)
    with story.gates_stopped("first") as gate:
        a_waiting_pod(story, "first", vision)
        story.until("its gate is being removed", lambda: "first" in gate.stopped)
        a_waiting_pod(story, "second", vision)
        story.wait_bound("second")
        story.until("the lost call is made again", lambda: gate.stopped.count("first") > 1)
        a_waiting_pod(story, "third", vision)
        story.wait_bound("third")
        assert is_gated(story, "first")

    story.wait_bound("first")
    story.wait_figures({vision: 3})


def test_a_pod_whose_bindings_fail_rests_and_others_go(story: Story) -> None:
    vision = story.queue("vision", limit=1)
    story.devices(9)
    story.claim("first")
    story.claim("second")
    with story.bindings_stopped("request.name == 'first'") as gate:
        gate.refuse()
        story.pod("first", vision, "first")
        story.wait_condition("first", "is in backoff. Its last ")
        story.pod("second", vision, "second")
        story.wait_bound("second")
    story.delete("pod", "second")
    story.delete("claim", "second")
    story.wait_bound("first")


def test_refused_without_a_gate_one_is_told_for_each_free_slot_in_their_order(
    story: Story,
) -> None:
    vision = story.queue("vision", limit=0)
    story.devices(9)
    for pod in ("p0", "p1", "p2"):
        story.claim(pod)
        story.pod(pod, vision, pod)
        story.wait_refused(pod, "OverLimit")
    # Else it may try the last once more by itself, before anybody is told.
    story.until("kube-scheduler tries none", lambda: has_given_up(story.cluster, pods=3))

    story.change_queue(vision, {"resources": [{"deviceClass": story.name, "limit": 1}]})

    story.wait_bound("p0")
    assert times_told(story, "p0", "Fits") >= 1
    assert [times_told(story, pod) for pod in ("p1", "p2")] == [0, 0]
    story.change_queue(vision, {"resources": [{"deviceClass": story.name, "limit": 3}]})
    story.wait_bound("p1", "p2")
    story.until("who went says nothing any more", lambda: not told(story, "p2"))
    story.wait_figures({vision: 3})


def test_a_pod_waits_until_the_claim_that_is_being_deleted_is_made_again(story: Story) -> None:
    """kube-scheduler lets no pod into its queue that names such a claim, and says so nowhere."""
    vision = story.queue("vision", limit=2)
    story.devices(2)
    story.claim()
    story.pod("user", vision)
    story.wait_bound("user")
    story.api.delete(story.path("claim", CLAIM))

    story.pod("late", vision, schedulingGates=[GATE])

    sentence = wait_told(story, "late", "ClaimNotFound: ")
    assert f"ResourceClaim {story.namespace}/{CLAIM}, which is terminating" in sentence
    assert is_gated(story, "late")
    story.wait_figures({vision: 1})
    story.delete("pod", "user")
    story.until("the claim is gone", lambda: story.find("claim", CLAIM) is None)
    story.claim()
    story.wait_bound("late")
    story.wait_figures({vision: 1})
