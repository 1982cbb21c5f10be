"""Small pods pass a large one, and not without end."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kube.shapes.times import timestamp
from scheduler_plugin.accounting.world_changes import GroupChanged, PodChanged, QueueChanged
from scheduler_plugin.objects.names import NO_QUEUE, QUOTA_GATE, PodUid, Queue
from scheduler_plugin.objects.pods import PodGroupView, PodView
from scheduler_plugin.waiting.admissions import WaitingPod, WaitReason
from scheduler_plugin.waiting.gates import GateKeeper
from scheduler_plugin.waiting.order.aging import in_kept_period
from tests.scheduler_plugin.builders import NOW, a_pod, a_queue, a_world, moment, pod_uid

FIRST = timedelta(minutes=5)
STEP = timedelta(minutes=1)
"""So often lines are looked at though nothing changes."""


class Scene:
    """Pods come, go, and end; time goes by in minutes."""

    def __init__(self, *queues: Queue, first_period: timedelta = FIRST) -> None:
        self.world = a_world(*queues)
        self.keeper = GateKeeper(self.world, first_period=first_period)
        self.now = NOW
        self.ends: dict[PodUid, datetime] = {}

    def create(self, name: str, devices: int, queue: str = "a", **spec: Any) -> None:
        group = {"pod-group-name": spec.pop("group")} if "group" in spec else {}
        pod = a_pod(
            name,
            queue=queue,
            created=timestamp(self.now),
            requests={"akri.sh/onvif": devices},
            annotations=group,
            spec={"schedulingGates": [{"name": QUOTA_GATE}], **spec},
        )
        self.put(pod)

    def put(self, pod: PodView) -> None:
        self.world.put_pod(pod)
        self.keeper.note(PodChanged(pod.uid))

    def delete(self, name: str) -> None:
        self.world.delete_pod(pod_uid(name))
        self.keeper.note(PodChanged(pod_uid(name)))

    def gone(self, lasts: timedelta | None = None) -> list[str]:
        """Who goes now, and runs at once; for so long, or until it is deleted."""
        decided = self.keeper.decide(self.now, moment(self.now))
        for found in decided:
            pod = self.world.facts.pod(found.uid)
            assert pod is not None
            self.put(replace(pod, gates=(), node="node-a"))
            if lasts is not None:
                self.ends[found.uid] = self.now + lasts
        return [found.name for found in decided]

    def pass_time(self, time: timedelta = STEP) -> None:
        self.now += time
        for uid in [uid for uid, end in self.ends.items() if end <= self.now]:
            del self.ends[uid]
            self.world.delete_pod(uid)
            self.keeper.note(PodChanged(uid))

    def why(self, name: str) -> tuple[str, str]:
        found = self.keeper.waiting("default", name)
        assert isinstance(found, WaitingPod), found
        return found.reason, found.message


@pytest.mark.parametrize(
    ("minutes", "kept"),
    [
        *((minutes, False) for minutes in (0, 4, 10, 19, 30, 49)),
        *((minutes, True) for minutes in (5, 9, 20, 29, 50, 69)),
    ],
)
def test_turns_are_free_and_kept_and_grow(minutes: int, kept: bool) -> None:
    assert in_kept_period(timedelta(minutes=minutes), FIRST) is kept


def minutes_until_the_large_goes(lasts: int, limit: int, most: int, first: timedelta) -> int | None:
    """Small pods come without end, each runs for so many minutes, and they never end together."""
    scene = Scene(a_queue("a", onvif=(0, limit)), first_period=first)
    scene.create("early", 1)
    scene.gone(timedelta(minutes=1))
    for number in range(1, limit):
        scene.create(f"early{number}", 1)
    scene.gone(timedelta(minutes=lasts))
    scene.create("large", limit)
    for minute in range(most):
        for number in range(limit + 1):
            scene.create(f"small{minute}-{number}", 1)
        if "large" in scene.gone(timedelta(minutes=lasts)):
            return minute
        scene.pass_time()
    return None


@settings(max_examples=15, deadline=None)
@given(lasts=st.integers(2, 14), limit=st.integers(2, 3))
def test_a_large_pod_goes_within_eight_times_the_longest_run_of_those_that_pass_it(
    lasts: int, limit: int
) -> None:
    bound = 5 + 7 * (lasts + 2)

    assert minutes_until_the_large_goes(lasts, limit, bound, timedelta.max) is None
    assert minutes_until_the_large_goes(lasts, limit, bound, FIRST) is not None


def a_large_one_waits(*queues: Queue) -> Scene:
    """One of two devices is used, and a pod has waited for both for six minutes."""
    scene = Scene(*(queues or (a_queue("a", onvif=(0, 2)),)))
    scene.create("runs", 1)
    assert scene.gone() == ["runs"]
    scene.pass_time()
    scene.create("large", 2)
    assert scene.gone() == []
    scene.pass_time(timedelta(minutes=6))
    assert scene.gone() == []
    return scene


def test_who_comes_later_leaves_room_and_is_told_for_whom() -> None:
    scene = a_large_one_waits()
    scene.create("small", 1)

    assert scene.gone() == []
    sentence = "Room is left for Pod default/large, which has waited since 2026-11-21T12:01:00Z."
    assert scene.why("small") == (WaitReason.ROOM_IS_LEFT, sentence)
    assert [
        (c.name, c.message) for c in scene.keeper.pending_conditions.take(9) if c.name == "small"
    ] == [("small", sentence)]

    scene.delete("runs")
    assert scene.gone() == ["large"]
    scene.delete("large")
    assert scene.gone() == ["small"]


def test_in_a_free_turn_others_go() -> None:
    scene = a_large_one_waits()
    scene.create("small", 1)
    assert scene.gone() == []

    scene.pass_time(timedelta(minutes=5))

    assert scene.gone() == ["small"]


def test_who_is_more_urgent_goes_all_the_same() -> None:
    scene = a_large_one_waits()
    scene.create("urgent", 1, priority=7)

    assert scene.gone() == ["urgent"]


def test_a_sibling_under_its_quota_goes_all_the_same_and_one_beside_it_does_not() -> None:
    root = a_queue("root", onvif=(0, 2))
    a = a_queue("a", parent="root", onvif=(0, -1))
    scene = a_large_one_waits(
        root,
        a,
        a_queue("b", parent="root", onvif=(0, -1)),
        a_queue("c", parent="root", onvif=(1, -1)),
    )
    scene.create("beside", 1, queue="b")
    assert scene.gone() == []

    scene.create("owed", 1, queue="c")

    assert scene.gone() == ["owed"]


def test_nobody_leaves_room_for_a_pod_that_can_never_fit() -> None:
    scene = Scene(a_queue("a", onvif=(0, 2)))
    scene.create("huge", 3)
    scene.pass_time(timedelta(minutes=6))
    scene.create("small", 1)

    assert scene.gone() == ["small"]


@pytest.mark.parametrize("way", ["delete", "hold", "limit"])
def test_who_is_gone_or_goes_keeps_nothing(way: str) -> None:
    scene = a_large_one_waits()
    scene.create("small", 1)
    assert scene.gone() == []

    if way == "delete":
        scene.delete("large")
    elif way == "hold":
        large = scene.world.facts.pod(pod_uid("large"))
        assert large is not None
        scene.put(replace(large, gates=("example.com/hold", QUOTA_GATE)))
    else:
        scene.world.put_queue(a_queue("a", onvif=(0, 4)))
        scene.keeper.note(QueueChanged(a_queue("a").name))

    assert scene.gone()[-1] == "small"


def test_room_is_left_for_a_group_as_a_whole() -> None:
    scene = Scene(a_queue("a", onvif=(0, 3)))
    scene.world.put_group(PodGroupView("default", "g", NO_QUEUE, 3))
    scene.keeper.note(GroupChanged("default", "g"))
    scene.create("runs", 1)
    assert scene.gone() == ["runs"]
    for number in range(3):
        scene.create(f"g{number}", 1, group="g")
    assert scene.gone() == []
    scene.pass_time(timedelta(minutes=6))
    scene.create("small", 1)
    assert scene.gone() == []

    scene.delete("runs")

    assert scene.gone() == ["g0", "g1", "g2"]
