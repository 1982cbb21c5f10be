"""The page of twenty questions: each answer is a module, in a room that the README names."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
PAGE = ROOT / "docs" / "design" / "where.md"
ROW = re.compile(r"^\| .+\? \| `(\S+)` \|$", re.MULTILINE)

ANSWERS = ROW.findall(PAGE.read_text())
NAMED = set(re.findall(r"\]\((\w[\w/.]*)\)", (ROOT / "README.md").read_text()))


def test_there_are_twenty_questions() -> None:
    assert len(set(ANSWERS)) == 20


@pytest.mark.parametrize("answer", ANSWERS)
def test_an_answer_is_a_module_in_a_room_that_the_readme_names(answer: str) -> None:
    assert (ROOT / answer).is_file()
    assert NAMED & {answer, str(Path(answer).parent)}
