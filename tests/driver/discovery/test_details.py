"""Details of any handler: what is too much is refused before it costs anything."""

from __future__ import annotations

import pytest

from driver.discovery.details import (
    DEEPEST_DETAILS,
    DETAILS,
    LONGEST_DETAILS,
    MOST_TOKENS,
    Fields,
)

FLAT = f"words: [{'a,' * (MOST_TOKENS // 2 - 10)}]"


def problems(text: str) -> list[str]:
    fields = Fields(text, ("words",))
    fields.strings("words")
    assert {problem.path for problem in fields.problems} <= {DETAILS, f"{DETAILS}.words[0]"}
    return [problem.message for problem in fields.problems]


@pytest.mark.parametrize(
    "part", ["[", "{", "[a,", "{a: ", "[{", "- ", "? ", "words: [", "- [", "-\n", "a:\n"]
)
def test_what_goes_on_without_end_is_refused_by_what_was_read_until_then(part: str) -> None:
    text = part * (LONGEST_DETAILS // len(part))

    (problem,) = problems(text)

    assert "too deeply" in problem or "too long" in problem


def test_the_longest_that_is_allowed_is_read() -> None:
    assert problems(FLAT) == []


@pytest.mark.parametrize("start", ["words: [", "{", "["])
def test_parts_are_counted(start: str) -> None:
    text = start + "a," * MOST_TOKENS

    assert problems(text) == ["The YAML is too long: more than 20000 words and signs."]


@pytest.mark.parametrize(("opening", "closing"), [("[", "]"), ("- ", "")])
def test_levels_are_counted(opening: str, closing: str) -> None:
    deep = DEEPEST_DETAILS + 1
    allowed = f"words:\n  {opening * (deep - 2)}a{closing * (deep - 2)}"
    refused = f"words:\n  {opening * deep}a{closing * deep}"

    assert "too deeply" not in problems(allowed)[0]
    assert problems(refused) == ["The YAML is nested too deeply: more than 32 levels."]


def test_brackets_in_words_are_no_levels() -> None:
    words = ", ".join(f"'[{number}'" for number in range(100))

    assert problems(f"words: [{words}]") == []
