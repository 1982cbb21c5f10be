"""The text that `kubectl get queues` shows of a queue's figures."""

from __future__ import annotations

import pytest

from scheduler_plugin.accounting.figures.summaries import LONGEST, summary
from scheduler_plugin.objects.amounts import NO_CHARGES, charges
from tests.scheduler_plugin.builders import a_queue, amounts


@pytest.mark.parametrize(
    ("shares", "usage", "text"),
    [
        ({}, {}, ""),
        ({"camera": (4, 8), "gpu": (2, -1)}, {"camera": 3, "gpu": 0}, "camera 3/4/8, gpu 0/2/-"),
        ({"camera": (-1, 8)}, {}, "camera 0/8/8"),
        ({"camera": (-1, -1)}, {"camera": 3}, "camera 3/-/-"),
        ({"camera": (0, 1)}, {"lidar": 2}, "lidar 2/0/-, camera 0/0/1"),
    ],
)
def test_each_class_has_its_usage_quota_and_limit(
    shares: dict[str, tuple[int, int]], usage: dict[str, int], text: str
) -> None:
    assert summary(amounts(**usage), a_queue("vision", **shares)) == text


def test_of_many_classes_those_in_use_are_told_and_the_number_of_the_rest() -> None:
    shares = {f"class-{number:03}": (1, 2) for number in range(100)}

    text = summary(amounts(**{"class-007": 1, "class-070": 2}), a_queue("vision", **shares))

    assert text == "class-007 1/1/2, class-070 2/1/2, class-000 0/1/2, +97 more"
    assert len(text) <= LONGEST + len(", +97 more")


def test_a_name_is_never_cut() -> None:
    name = "c" * 253

    assert (
        summary(NO_CHARGES, a_queue("vision", **{name: (1, 2), "gpu": (1, 2)}))
        == f"{name} 0/1/2, +1 more"
    )


def test_numbers_are_those_that_the_api_can_hold() -> None:
    most = 2**63 - 1

    assert summary(amounts(gpu=most), a_queue(gpu=(most, most))) == f"gpu {most}/{most}/{most}"


def test_measures_are_quantities() -> None:
    memory = {"name": "memory", "driver": "gpu.example.com", "measure": {"capacity": "memory"}}
    queue = a_queue(resources=[{**memory, "quota": "80Gi", "limit": "320Gi"}])
    (key,) = queue.shares

    assert summary(charges({key: 1500}), queue) == "memory 1500m/80Gi/320Gi"
