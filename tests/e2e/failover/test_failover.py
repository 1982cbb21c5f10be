"""The leader is killed or stopped in the middle of a bind: the other one takes over.

A killed replica begins nothing any more. A stopped one believes, when it wakes up, that no time
has passed; it must not write. Whose write it was, the API server's audit log says.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from tests.e2e.failover.stories import CONTINUED, KILLED, STOPPED, Story, charged
from tests.e2e.sharing.audit import Entry

LIMIT = 3
GATEWAY_TIMEOUT = 504
"""What the API server answers when the time is over that a write was given."""


def test_a_leader_killed_between_label_and_binding_leaves_one_owner_and_one_binding(
    story: Story,
) -> None:
    vision, robots = story.queue("vision"), story.queue("robots", limit=0)
    story.devices(1)
    story.claim()
    with story.gate_of_leader() as gate:
        story.pod("first", vision)
        story.until("its binding is under way", lambda: "first" in gate.stopped)
        assert (story.owner(), story.owner_pod()) == (vision, story.uid("pod", "first"))

        story.leader.scheduler.signal(KILLED)
        story.leader.plugin.signal(KILLED)

        story.pod("foreign", robots)
        story.wait_bound("first", "foreign")
    assert (story.owner(), story.owner_pod()) == (vision, story.uid("pod", "first"))
    assert story.owner_writes() == 1
    assert story.wait_bindings("first") == 1
    assert story.binding_codes("first", story.follower).count(201) == 1
    story.wait_figures({vision: 1, robots: 0})


def test_a_kube_scheduler_that_was_stopped_in_a_bind_changes_nothing_when_it_wakes_up(
    story: Story,
) -> None:
    """It goes on for a while, and would take the reservations of a pod back whose Bind failed."""
    vision = story.queue("vision")
    story.devices(1)
    story.claim()
    with story.holding("bind", "first"):
        story.pod("first", vision)
        story.until("it is about to be bound", lambda: story.is_held("bind", "first"))
        story.leader.scheduler.signal(STOPPED)
        story.wait_bound("first")
        story.plain_pod("nobodys", schedulerName="nobody")
        since = story.moment()
        story.leader.scheduler.signal(CONTINUED)

    assert f'"{story.follower.node}_' in story.ask_to_bind("nobodys")
    story.wait_given_up()
    key = story.key("first")
    answers = story.until("its bind is answered", lambda: story.extender.answers("bind", key))
    assert answers == [{"Error": ""}]
    assert story.written_by(story.leader, since) == []
    assert story.consumers() == ["first"]
    assert (story.owner_writes(), story.wait_bindings("first")) == (1, 1)
    assert story.node_of("nobodys") == ""
    story.wait_figures({vision: 1})


def test_a_plugin_that_was_stopped_with_a_write_under_way_writes_nothing_when_it_wakes_up(
    story: Story,
) -> None:
    """Its kube-scheduler lets go of the Lease at once: the other plugin waits nevertheless."""
    vision, robots = story.queue("vision"), story.queue("robots", limit=0)
    story.devices(1)
    story.claim()
    with story.gate_of_leader() as gate:
        story.pod("first", vision)
        story.until("its binding is under way", lambda: "first" in gate.stopped)
        story.leader.plugin.signal(STOPPED)
        story.leader.scheduler.stop()
        story.pod("foreign", robots)
        story.wait_bound("first", "foreign")

        since = story.moment()
        gate.allow()
        story.leader.plugin.signal(CONTINUED)
        story.until("it wakes up and follows", story.leader.follows)

    assert story.written_by(story.leader, since) == []
    assert set(story.binding_codes("first", story.leader)) == {GATEWAY_TIMEOUT}
    assert (story.owner_writes(), story.wait_bindings("first")) == (1, 1)
    story.wait_figures({vision: 1, robots: 0})


def test_a_replica_that_was_stopped_with_writes_under_way_changes_nothing_when_it_wakes_up(
    story: Story,
) -> None:
    vision = story.queue("vision")
    story.devices(2)
    story.claim()
    story.claim("other")
    leader = story.leader
    with story.gate_of_leader() as gate, story.holding("bind", "second"):
        story.pod("first", vision)
        story.pod("second", vision, "other")
        story.until("one binding is under way", lambda: "first" in gate.stopped)
        story.until("one is asked for", lambda: story.is_held("bind", "second"))
        for process in leader.all:
            process.signal(STOPPED)
        story.wait_bound("first", "second")

        since = story.moment()
        gate.allow()
        for process in leader.all:
            process.signal(CONTINUED)
    story.wait_given_up()
    key = story.key("second")
    story.until("its late bind is answered", lambda: leader.extender.answers("bind", key))

    assert story.written_by(leader, since) == []
    for pod, claim in (("first", "shared"), ("second", "other")):
        assert story.consumers(claim) == [pod]
        assert (story.owner_writes(claim), story.wait_bindings(pod)) == (1, 1)
    story.wait_figures({vision: 2})


def test_no_limit_is_passed_at_any_moment_while_the_leader_changes(story: Story) -> None:
    """The plugin beside the kube-scheduler that dies goes on with the bindings under way."""
    vision = story.queue("vision", limit=LIMIT)
    story.devices(2 * LIMIT)
    pods = [f"pod-{number}" for number in range(2 * LIMIT)]
    claims, bindings = story.version("claim"), story.version("pod")
    for pod in pods[:LIMIT]:
        story.claim(pod)
        story.pod(pod, vision, pod)
    story.until("one is bound", story.bound)

    story.leader.scheduler.signal(KILLED)
    for pod in pods[LIMIT:]:
        story.claim(pod)
        story.pod(pod, vision, pod)
    story.wait_taken_over()
    story.until("as many are bound as may", lambda: len(story.bound()) == LIMIT)
    for pod in set(pods) - story.bound():
        story.wait_refused(pod, "OverLimit")

    assert most(story.history("claim", claims), lambda claim: charged(claim, vision)) == LIMIT
    assert most(story.history("pod", bindings), lambda pod: "nodeName" in pod["spec"]) == LIMIT
    assert sum(story.bindings_of(pod) for pod in pods) == LIMIT
    story.wait_figures({vision: LIMIT})


def most(history: Iterable[Entry], counts: Callable[[Entry], bool]) -> int:
    """How many objects counted at one time, at the most."""
    now: set[str] = set()
    highest = 0
    for event in history:
        name = event["object"]["metadata"]["name"]
        is_there = event["type"] != "DELETED" and counts(event["object"])
        now = now | {name} if is_there else now - {name}
        highest = max(highest, len(now))
    return highest
