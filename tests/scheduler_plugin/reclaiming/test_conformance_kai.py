"""What KAI's tables for reclaim and preempt expect, said in claims: `docs/conformance-kai.md`.

A job of theirs is a pod with a claim of as many devices; `train` has priority 50 and is
preemptible, `build` has 100 and is not. The size of the cluster is the limit of a root queue.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from scheduler_plugin.objects.names import NO_QUEUE, POD_GROUP_ANNOTATION
from scheduler_plugin.objects.pods import PodGroupView
from tests.scheduler_plugin.builders import a_queue, a_world
from tests.scheduler_plugin.reclaiming.builders import taken, use, waiting

PAGE = Path(__file__).parents[3] / "docs" / "conformance-kai.md"
TRAIN, BUILD, INFERENCE = 50, 100, 125

Job = tuple[str, str, int, int]
"""Name, queue, devices, priority; those named `name-…` are one gang."""


@dataclass(frozen=True, slots=True)
class Case:
    """One row.

    Attributes:
        queues: Name, parent, quota, weight, priority.
        w: The job that waits: its queue, devices of each of its pods, priority.
        waits: How many pods of it wait.
        gang: Of how many it is a gang, together with what runs of `w-…`; 0 for none.
        go: Those that go for it.
    """

    devices: int
    queues: Sequence[tuple[str, str, int, int, int]]
    runs: Sequence[Job]
    w: tuple[str, int, int]
    go: list[str] = field(default_factory=list)
    waits: int = 1
    gang: int = 0


def q(
    name: str, quota: int, weight: int = 1, parent: str = "root", priority: int = 100
) -> tuple[str, str, int, int, int]:
    return (name, parent, quota, weight, priority)


def decided(case: Case) -> list[str]:
    queues = [a_queue("root", onvif=(case.devices, case.devices))]
    for name, parent, quota, weight, priority in case.queues:
        share = (quota, -1, weight)
        queues.append(a_queue(name, parent=parent, priority=priority, onvif=share))
    objects: list[object] = []
    sizes = Counter(gang_of(name) for name, *_ in case.runs)
    for name, queue, cost, priority in case.runs:
        objects += use(queue, name, cost=cost, priority=priority, **annotated(gang_of(name)))
    queue, cost, priority = case.w
    gang = annotated("w" if case.gang else "")
    for number in range(case.waits):
        name = f"w{number or ''}"
        objects += waiting(queue, name, cost=cost, priority=priority, **gang)
    world = a_world(*queues, *objects)
    for name, size in {**sizes, "w": case.gang}.items():
        if name and size:
            world.put_group(PodGroupView("default", name, NO_QUEUE, size))
    return taken(world)


def gang_of(job: str) -> str:
    return job.partition("-")[0] if "-" in job else ""


def annotated(gang: str) -> dict[str, Any]:
    return {"annotations": {POD_GROUP_ANNOTATION: gang}} if gang else {}


TWO_OF_TWO = [q("q0", 2, 2), q("q1", 2, 2)]
DEPARTMENTS = [q("d1", 1), q("d2", 1), q("q0", 1, 1, "d1"), q("q1", 1, 1, "d2")]
IN_DEPARTMENTS = [("train", "q0", 1, TRAIN), ("build", "q0", 1, BUILD)]

AS_EXPECTED = {
    "reclaim 151": Case(
        2, [q("q0", 1), q("q1", 1)], [("a", "q0", 2, TRAIN)], ("q1", 1, TRAIN), ["a"]
    ),
    "reclaim 1762": Case(
        4,
        [
            *(q("d1", 0), q("d2", 4)),
            *(q("q0", 1, parent="d1"), q("q1", 0, 0, parent="d2"), q("q2", 4, 4, parent="d2")),
        ],
        [("a", "q0", 2, TRAIN), ("b", "q1", 2, TRAIN)],
        ("q2", 4, TRAIN),
        ["a", "b"],
    ),
    "reclaim 215, 314": Case(
        4,
        TWO_OF_TWO,
        [("a", "q0", 1, TRAIN), ("b", "q1", 2, TRAIN), ("c", "q1", 1, TRAIN)],
        ("q0", 1, TRAIN),
        ["c"],
    ),
    "reclaim 413, 511": Case(
        4,
        [q("q0", 2, 2), q("q1", 1)],
        [("a", "q0", 1, TRAIN), ("b", "q0", 2, TRAIN), ("c", "q1", 1, TRAIN)],
        ("q1", 1, TRAIN),
    ),
    "reclaim 898": Case(
        4,
        [q("q0", 1), q("q1", 1), q("q2", 1, 0, priority=101)],
        [
            ("a", "q0", 1, TRAIN),
            ("b", "q0", 1, TRAIN),
            ("c", "q2", 1, TRAIN),
            ("d", "q2", 1, TRAIN),
        ],
        ("q1", 1, TRAIN),
        ["a"],
    ),
    "reclaim 1126": Case(
        7,
        [q("q0", 2, 2), q("q1", 1)],
        [("a", "q0", 4, TRAIN), ("b", "q1", 3, TRAIN)],
        ("q0", 1, TRAIN),
    ),
    "reclaim 1206": Case(2, DEPARTMENTS, IN_DEPARTMENTS, ("q1", 1, TRAIN), ["train"]),
    "reclaim 1298": Case(2, DEPARTMENTS, IN_DEPARTMENTS, ("q1", 1, BUILD), ["train"]),
    "reclaim 1390": Case(
        4,
        [q("d1", 2), q("d2", 2), q("q0", 1, 1, "d1"), q("q1", 1, 1, "d2"), q("q2", 1, 1, "d2")],
        [("a", "q0", 3, TRAIN), ("b", "q1", 1, BUILD)],
        ("q1", 2, TRAIN),
    ),
    "reclaim 1859, the second": Case(
        2, [q("q0", 0, 0), q("q1", 1)], [("a", "q0", 2, TRAIN)], ("q1", 1, BUILD), ["a"]
    ),
    "reclaim 1859, the first": Case(
        2, [q("q0", 0, 0), q("q1", 1)], [("a", "q0", 2, TRAIN)], ("q1", 2, BUILD)
    ),
    "reclaim 2153": Case(4, [q("q0", 2, 2), q("q1", 1)], [("a", "q0", 3, TRAIN)], ("q1", 2, TRAIN)),
    "reclaim 3603": Case(
        4,
        [q("d1", 2), q("d2", 2), q("q0", 2, 3, "d1"), q("q1", 2, 0, "d2")],
        [("a", "q0", 2, TRAIN), ("b", "q0", 2, BUILD)],
        ("q1", 2, TRAIN),
        ["a"],
    ),
    "reclaim 3698": Case(
        6,
        [q("d1", 3), q("d2", 3), q("q0", 3, 0, "d1"), q("q1", 2, 0, "d2"), q("q2", 1, 0, "d2")],
        [
            ("a", "q0", 2, TRAIN),
            ("b", "q0", 1, BUILD),
            ("c", "q1", 2, TRAIN),
            ("d", "q1", 1, TRAIN),
        ],
        ("q2", 1, TRAIN),
        ["d"],
    ),
    "reclaim 3831": Case(
        6,
        DEPARTMENTS,
        [
            ("a", "q0", 2, TRAIN),
            ("b", "q0", 1, BUILD),
            ("c", "q1", 2, TRAIN),
            ("d", "q1", 1, TRAIN),
        ],
        ("q1", 1, TRAIN),
    ),
    "reclaim 3954": Case(
        2,
        [q("d1", 2), q("d2", 2), q("q0", 1, 0, "d1"), q("q1", 1, 0, "d2")],
        [("a", "q0", 1, TRAIN), ("b", "q1", 1, BUILD)],
        ("q1", 1, TRAIN),
    ),
    "reclaim 4049": Case(
        3,
        [q("q0", 1, 0), q("q1", 2)],
        [("a", "q0", 1, 2), ("b", "q0", 1, 1), ("c", "q1", 1, 2)],
        ("q1", 1, 2),
        ["b"],
    ),
    "preempt 120": Case(2, [q("q0", 1)], [("a", "q0", 2, TRAIN)], ("q0", 1, BUILD), ["a"]),
    "preempt 178": Case(
        4,
        [q("q0", 4)],
        [("a", "q0", 1, TRAIN), ("b", "q0", 2, TRAIN), ("c", "q0", 1, TRAIN)],
        ("q0", 4, BUILD),
        ["a", "b", "c"],
    ),
    "preempt MIG 29": Case(1, [q("q0", 1)], [("a", "q0", 1, TRAIN)], ("q0", 1, BUILD), ["a"]),
    "preempt MIG 93": Case(1, [q("q0", 1)], [("a", "q0", 1, TRAIN)], ("q0", 1, INFERENCE), ["a"]),
    "preempt MIG 157": Case(
        3,
        [q("q0", 3)],
        [("a", "q0", 1, BUILD), ("b", "q0", 1, TRAIN), ("c", "q0", 1, BUILD)],
        ("q0", 1, BUILD),
        ["b"],
    ),
    "preempt MIG 257": Case(1, [q("q0", 1)], [("a", "q0", 1, BUILD)], ("q0", 1, BUILD)),
    "preempt MIG 317": Case(1, [q("q0", 1), q("q1", 1)], [("a", "q0", 1, TRAIN)], ("q1", 1, BUILD)),
    "reclaim 4244": Case(
        2,
        [q("q0", 0, 0), q("q1", 0, 0), q("q2", 2, 0)],
        [("a", "q0", 1, TRAIN), ("b", "q1", 1, TRAIN)],
        ("q2", 1, TRAIN),
        ["a"],
    ),
    "reclaim 4337": Case(
        2,
        [q("q0", 0, 0), q("q1", 2, 0)],
        [("a", "q0", 1, TRAIN)],
        ("q1", 1, TRAIN),
        ["a"],
        waits=2,
        gang=2,
    ),
    "reclaim MIG 32": Case(
        2, [q("q0", 0), q("q1", 2)], [("a", "q0", 1, TRAIN)], ("q1", 2, TRAIN), ["a"]
    ),
    "reclaim MIG 100": Case(4, [q("q0", 1), q("q1", 1)], [("a", "q0", 2, TRAIN)], ("q1", 3, TRAIN)),
    "preempt gang 26": Case(
        2, [q("q0", 2)], [("a", "q0", 2, TRAIN)], ("q0", 1, BUILD), ["a"], waits=2, gang=2
    ),
    "preempt gang 87": Case(
        3,
        [q("q0", 2)],
        [("a", "q0", 1, TRAIN), ("b", "q0", 1, TRAIN), ("w-0", "q0", 1, BUILD)],
        ("q0", 1, BUILD),
        ["a"],
        gang=2,
    ),
    "preempt gang 165": Case(
        2,
        [q("q0", 1)],
        [("job-0", "q0", 1, TRAIN), ("job-1", "q0", 1, TRAIN)],
        ("q0", 1, BUILD),
        ["job-0", "job-1"],
    ),
    "preempt 351": Case(
        4,
        [q("q0", 3)],
        [("a", "q0", 1, TRAIN), ("b", "q0", 2, TRAIN), ("c", "q0", 1, TRAIN)],
        ("q0", 4, BUILD),
    ),
}

OTHERWISE = {
    # Whoever is farthest above its share gives, whatever its weight of what is beyond quotas.
    "reclaim 797": Case(
        4,
        [q("q0", 1), q("q1", 1), q("q2", 0, 0)],
        [("a", "q0", 2, TRAIN), ("b", "q0", 1, TRAIN), ("c", "q2", 1, TRAIN)],
        ("q1", 1, TRAIN),
        ["b"],
    ),
    # Quotas that add up to more than there is: five are more than its part.
    "reclaim 609": Case(
        8, [q("q0", 6, 6), q("q1", 5, 5)], [("a", "q0", 8, TRAIN)], ("q1", 5, TRAIN)
    ),
    # Nobody gets more than its quota back, whatever its share of the rest were.
    "reclaim 1016": Case(
        8,
        [q("q0", 1), q("q1", 1)],
        [("a", "q0", 1, TRAIN), ("b", "q0", 3, TRAIN), ("c", "q0", 4, TRAIN)],
        ("q1", 4, TRAIN),
    ),
    # KAI leaves it, as it says for a bug; the queue is below its quota.
    "reclaim 674": Case(
        4,
        TWO_OF_TWO,
        [("a", "q0", 2, TRAIN), ("b", "q0", 1, TRAIN), ("c", "q1", 1, TRAIN)],
        ("q1", 1, TRAIN),
        ["b"],
    ),
}


@pytest.mark.parametrize("row", AS_EXPECTED)
def test_what_kai_expects_is_decided(row: str) -> None:
    assert decided(AS_EXPECTED[row]) == AS_EXPECTED[row].go


@pytest.mark.parametrize("row", OTHERWISE)
def test_where_we_mean_something_else_that_is_decided(row: str) -> None:
    assert decided(OTHERWISE[row]) == OTHERWISE[row].go


def test_the_page_says_as_expected_of_the_rows_that_run_and_of_no_others() -> None:
    """Where it names another test, that one counts."""
    said, action = set(), ""
    for line in PAGE.read_text(encoding="utf-8").splitlines():
        if line.startswith("## "):
            action = line.split()[1].lower()
        row, _, here = ([cell.strip() for cell in line.split("|")[1:-1]] + [""] * 3)[:3]
        if here.startswith("as expected") and "`test_" not in here:
            said |= keys(f"{action} {row.removeprefix(action).strip()}")

    assert said == {key for row in AS_EXPECTED for key in keys(row)}


def keys(row: str) -> set[str]:
    """`preempt MIG 29` and `preempt MIG 93` of a row `preempt MIG 29, 93`."""
    kind = " ".join(word for word in row.partition(",")[0].split() if not word.isdigit())
    return {f"{kind} {number}" for number in re.findall(r"\d+", row)}
