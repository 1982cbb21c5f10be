"""Faults end in any order, also where one keeps another one from ending."""

from __future__ import annotations

from random import Random
from typing import Any, cast

import pytest

from tests.chaos.faults import Fault
from tests.chaos.scene import Scene
from tests.chaos.trial import Trial


class FakeNode:
    """A kubelet that starts beside a containerd that moves, and not otherwise."""

    def __init__(self) -> None:
        self.is_still = True
        self.done: list[str] = []

    def move(self) -> None:
        self.is_still = False
        self.done.append("containerd")

    def start(self) -> None:
        if self.is_still:
            raise OSError("kubelet died")
        self.done.append("kubelet")

    def reconfigure(self) -> None:
        self.start()


@pytest.fixture
def node() -> FakeNode:
    return FakeNode()


@pytest.fixture
def trial(node: FakeNode) -> Trial:
    scene: Any = type("FakeScene", (), {"cluster": node})
    found = Trial(cast("Scene", scene), Random(0), lambda _: None)
    faults = (Fault("kill kubelet", 6.0, node.start), Fault("stop containerd", 8.0, node.move))
    found.broken = [(fault.seconds, fault) for fault in faults]
    return found


def test_a_fault_that_cannot_end_yet_is_tried_again(trial: Trial, node: FakeNode) -> None:
    trial.mend(due=6.0)
    assert len(trial.broken) == 2
    trial.mend(due=8.0)
    trial.mend(due=8.5)

    assert node.done == ["containerd", "kubelet"]
    assert not trial.broken


def test_at_the_end_of_a_round_all_is_started_after_all_faults(
    trial: Trial, node: FakeNode
) -> None:
    trial.mend(due=float("inf"))

    assert node.done == ["containerd", "kubelet"]
    assert not trial.broken
