"""Names of objects."""

from __future__ import annotations

import pytest

from kube.shapes.names import LONGEST_LABEL, LONGEST_NAME, is_label, is_name


@pytest.mark.parametrize("text", ["a", "a-b", "0", "a" * LONGEST_LABEL])
def test_a_label_is_a_name_too(text: str) -> None:
    assert is_label(text)
    assert is_name(text)


@pytest.mark.parametrize("text", ["a.b", "a-b.c-d", "a" * LONGEST_NAME])
def test_a_name_has_dots_and_is_longer(text: str) -> None:
    assert is_name(text)
    assert not is_label(text)


@pytest.mark.parametrize(
    "text", ["", "-a", "a-", "A", "a_b", "a/b", ".a", "a.", "a..b", "a\n", "ä", "a" * 254]
)
def test_anything_else_is_neither(text: str) -> None:
    assert not is_name(text)
    assert not is_label(text)


def test_what_has_less_room_says_so() -> None:
    assert not is_label("abc", 2)
    assert not is_name("a.b", 2)
