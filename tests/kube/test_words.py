"""Numbers and lists of names as sentences have them."""

from __future__ import annotations

import pytest

from kube.words import number_of, some_of


@pytest.mark.parametrize(
    ("count", "said"), [(0, ""), (1, "a"), (3, "a, b, c"), (4, "a, b, c and 1 more")]
)
def test_of_many_names_the_first_are_told(count: int, said: str) -> None:
    assert some_of(iter("abcd"[:count])) == said


def test_how_many_are_told_is_the_callers_to_say() -> None:
    assert some_of("abc", 1) == "a and 2 more"


@pytest.mark.parametrize(("count", "said"), [(0, "0 pods"), (1, "1 pod"), (2, "2 pods")])
def test_one_is_no_plural(count: int, said: str) -> None:
    assert number_of(count, "pod") == said
