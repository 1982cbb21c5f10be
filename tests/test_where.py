"""The page of twenty-seven questions: each answer is a module, in a room that `rooms.md` names."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
DESIGN = ROOT / "docs" / "design"
PAGE = DESIGN / "where.md"
COMPONENTS = ("binder", "driver", "kube", "scheduler_plugin", "webhook")
ROW = re.compile(r"^\| .+\? \| `(\S+)` \|$", re.MULTILINE)

ANSWERS = ROW.findall(PAGE.read_text())
LINK = re.compile(r"\]\(\.\./\.\./([\w/.-]+?)(?:/__init__\.py)?\)")
NAMED = set(LINK.findall((DESIGN / "rooms.md").read_text()))
ROOMS = sorted(
    str(room.parent.relative_to(ROOT))
    for component in COMPONENTS
    for room in (ROOT / component).glob("*/__init__.py")
)


def test_there_are_twenty_seven_questions() -> None:
    assert len(set(ANSWERS)) == 27


@pytest.mark.parametrize("answer", ANSWERS)
def test_an_answer_is_a_module_in_a_room_that_is_named(answer: str) -> None:
    assert (ROOT / answer).is_file()
    assert NAMED & {answer, str(Path(answer).parent)}


@pytest.mark.parametrize("room", ROOMS)
def test_each_room_is_named_and_says_what_it_is_about(room: str) -> None:
    assert room in NAMED
    assert (ROOT / room / "__init__.py").read_text().startswith('"""')


def test_nothing_is_named_that_is_not_there() -> None:
    assert [path for path in NAMED if not (ROOT / path).exists()] == []


FAILURES = (DESIGN / "failures.md").read_text()
STEP = re.compile(r"^\| .+? \| `([\w/]+\.py)`(?: `(\w+)`)? \|", re.MULTILINE)
STEPS = sorted(set(STEP.findall(FAILURES)))
HELD_BY = set(re.findall(r"`(test_\w+)`", FAILURES))


@pytest.mark.parametrize(("module", "function"), STEPS)
def test_a_step_that_may_fail_is_in_the_module_that_is_named(module: str, function: str) -> None:
    assert f"def {function}" in (ROOT / module).read_text()


def test_a_step_that_may_fail_is_held_by_a_test_that_is_there() -> None:
    stories = "\n".join(file.read_text() for file in (ROOT / "tests").rglob("test_*.py"))

    assert len(STEPS) >= 30
    assert {test for test in HELD_BY if f"def {test}(" not in stories} == set()
