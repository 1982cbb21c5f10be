"""Each move of a waiting pod that the table names is one that the gate keeper makes.

That it makes no other is held by the histories, whose keeper is a watched one.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta

import pytest

from scheduler_plugin.accounting.world_changes import PodChanged
from scheduler_plugin.objects.names import QUOTA_GATE, PodUid
from scheduler_plugin.objects.pods import PodView
from scheduler_plugin.waiting.classes.refused_pods import RefusedPods
from scheduler_plugin.waiting.deferred.deferred_pods import TRIED_SECONDS
from scheduler_plugin.waiting.pod_states import MEANINGS, TRANSITIONS, PodState
from tests.scheduler_plugin.builders import NOW, a_pod, a_queue, a_world, moment, pod_uid
from tests.scheduler_plugin.waiting.watched_keepers import WatchedKeeper

NOT_WAITING, NOT_READY, QUEUED = PodState.NOT_WAITING, PodState.NOT_READY, PodState.QUEUED
INADMISSIBLE, ASSUMED, BACKOFF = PodState.INADMISSIBLE, PodState.ASSUMED, PodState.BACKOFF

OTHER_GATE = "example.com/hold"
P = pod_uid("p")


class Story:
    """A queue with room for one device, and pods that ask for one each."""

    def __init__(self) -> None:
        self.now = NOW
        self.world = a_world(*(a_queue(name, onvif=(0, 1)) for name in ("a", "b")))
        self.refused = RefusedPods()
        self.refused.changed = self.tried
        self.keeper = WatchedKeeper(self.world, self.refused)

    def tried(self, uid: PodUid) -> None:
        self.keeper.tried(uid, moment(self.now))

    def tell(self, pod: PodView) -> None:
        self.world.put_pod(pod)
        self.keeper.note(PodChanged(pod.uid))

    def put(self, name: str = "p", *gates: str, queue: str = "a") -> None:
        pod = a_pod(name, queue=queue, requests={"akri.sh/onvif": 1})
        self.tell(replace(pod, gates=gates or (QUOTA_GATE,)))

    def delete(self) -> None:
        self.world.delete_pod(P)
        self.keeper.note(PodChanged(P))

    def hold(self) -> None:
        self.put("p", OTHER_GATE, QUOTA_GATE)

    def ungate(self) -> None:
        pod = self.world.facts.pod(P)
        assert pod is not None
        self.tell(replace(pod, gates=()))

    def fill(self) -> None:
        self.tell(a_pod("full", queue="a", requests={"akri.sh/onvif": 1}, node="node-a"))

    def free(self) -> None:
        pod = self.world.facts.pod(pod_uid("full"))
        assert pod is not None
        self.tell(replace(pod, ended=True))

    def decide(self, seconds: float = 0, most: int | None = None) -> None:
        self.now += timedelta(seconds=seconds)
        self.keeper.decide(self.now, moment(self.now), most)

    def look(self, seconds: float = 0) -> None:
        """Which pods come back is looked at, and nothing is judged."""
        self.decide(seconds, 0)

    def fail(self) -> None:
        self.keeper.failed(P, moment(self.now))

    def refuse_one_like_it(self) -> None:
        """The room of the queue is taken, and another pod is refused."""
        if self.keeper.state(P) is not ASSUMED:
            self.fill()
        self.put("x")
        self.decide(most=None)
        assert self.keeper.state(pod_uid("x")) is INADMISSIBLE


def nothing(_: Story) -> None:
    """Not there yet."""


def refused(story: Story) -> None:
    story.fill()
    story.put()
    story.decide()


def let_go(story: Story) -> None:
    story.put()
    story.decide()


def failed(story: Story) -> None:
    let_go(story)
    story.fail()


def let_go_beside_a_refused_one(story: Story) -> None:
    let_go(story)
    story.refuse_one_like_it()


def failed_beside_a_refused_one(story: Story) -> None:
    let_go_beside_a_refused_one(story)
    story.fail()


def refused_without_a_gate(story: Story) -> None:
    """It was let go since, which means that a condition says so."""
    story.fill()
    story.put()
    story.ungate()
    story.refused.answered(P, refused=True)
    story.decide()
    story.free()
    story.decide()


Act = Callable[[Story], object]

SCENES: dict[tuple[PodState, PodState], tuple[Act, tuple[Act, ...]]] = {
    (NOT_WAITING, NOT_READY): (nothing, (Story.hold,)),
    (NOT_WAITING, QUEUED): (nothing, (Story.put,)),
    (NOT_WAITING, INADMISSIBLE): (Story.refuse_one_like_it, (Story.put,)),
    (NOT_READY, NOT_WAITING): (Story.hold, (Story.delete,)),
    (NOT_READY, QUEUED): (Story.hold, (Story.put,)),
    (NOT_READY, INADMISSIBLE): (Story.hold, (Story.refuse_one_like_it, Story.put)),
    (QUEUED, NOT_WAITING): (Story.put, (Story.ungate,)),
    (QUEUED, NOT_READY): (Story.put, (Story.hold,)),
    (QUEUED, INADMISSIBLE): (Story.put, (Story.fill, Story.decide)),
    (QUEUED, ASSUMED): (Story.put, (Story.decide,)),
    (INADMISSIBLE, NOT_WAITING): (refused, (Story.delete,)),
    (INADMISSIBLE, NOT_READY): (refused, (Story.hold,)),
    (INADMISSIBLE, QUEUED): (refused, (lambda story: story.put(queue="b"),)),
    (INADMISSIBLE, ASSUMED): (refused, (Story.free, Story.decide)),
    (ASSUMED, NOT_WAITING): (let_go, (Story.ungate,)),
    (ASSUMED, NOT_READY): (let_go, (Story.hold, lambda story: story.look(61))),
    (ASSUMED, QUEUED): (let_go, (lambda story: story.look(61),)),
    (ASSUMED, INADMISSIBLE): (let_go_beside_a_refused_one, (lambda story: story.look(61),)),
    (ASSUMED, BACKOFF): (let_go, (Story.fail,)),
    (BACKOFF, NOT_WAITING): (failed, (Story.delete,)),
    (BACKOFF, NOT_READY): (failed, (Story.hold, Story.look)),
    (BACKOFF, QUEUED): (failed, (Story.look,)),
    (BACKOFF, INADMISSIBLE): (failed_beside_a_refused_one, (Story.look,)),
}


def test_each_move_of_the_table_has_a_scene() -> None:
    assert SCENES.keys() == {(a, b) for a, moves in TRANSITIONS.items() for b in moves}
    assert MEANINGS.keys() == set(PodState) == TRANSITIONS.keys()


@pytest.mark.parametrize(("before", "after"), SCENES, ids=" to ".join)
def test_the_keeper_makes_the_move(before: PodState, after: PodState) -> None:
    story, (begin, acts) = Story(), SCENES[before, after]
    begin(story)
    assert story.keeper.state(P) is before

    for act in acts:
        act(story)

    assert story.keeper.state(P) is after


@pytest.mark.parametrize("passes", [True, False])
def test_a_pod_without_a_gate_that_was_let_go_and_is_tried_backs_off_if_it_is_refused(
    passes: bool,
) -> None:
    story = Story()
    refused_without_a_gate(story)
    assert story.keeper.state(P) is ASSUMED

    story.refused.answered(P, refused=not passes)

    assert story.keeper.state(P) is (NOT_WAITING if passes else BACKOFF)


def test_a_pod_without_a_gate_that_is_not_tried_in_time_backs_off() -> None:
    story = Story()
    refused_without_a_gate(story)
    story.fail()
    story.decide(1)
    assert story.keeper.state(P) is ASSUMED

    story.look(TRIED_SECONDS)

    assert story.keeper.state(P) is BACKOFF
