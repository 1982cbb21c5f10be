"""Globs mean what they mean to udevd."""

from __future__ import annotations

import fnmatch

import pytest
from hypothesis import given
from hypothesis import strategies as st

from driver.discovery.udev.rules import Glob

PATTERNS = st.lists(
    st.sampled_from(["*", "?", "[a-c]", "[!a]", "[!a-b]", "[]a]", "[[]", "a", "b", ".", "/", "-"])
).map("".join)
VALUES = st.text("abcd1]-[!*/.\n", max_size=8)


@pytest.mark.parametrize(
    ("pattern", "values", "others"),
    [
        ("video*", ["video", "video0", "video/0"], ["avideo", "Video0", ""]),
        ("video[0-9]*", ["video0", "video10"], ["video", "videox"]),
        ("tty[SR]", ["ttyS", "ttyR"], ["ttyA", "tty", "ttySR"]),
        ("?*", ["a", "\n"], [""]),
        ("*", ["", "a", ".hidden", "a/b", "a\nb"], []),
        ("abc|x*", ["abc", "x", "xy"], ["abcd", "ab", "abc|x"]),
        ("[!0-9]x", ["ax"], ["1x"]),
        ("[^0-9]x", ["ax"], ["1x"]),
        ("", [""], ["a"]),
        ("a|", ["a", ""], ["b"]),
        ("a*|", ["ab", ""], ["b"]),
        ("|", [""], ["|"]),
        ("[unclosed", ["[unclosed"], ["u"]),
        (r"\*a*", ["*a", "*ab"], ["a", r"\*a"]),
        (r"C:\dir", [r"C:\dir"], ["C:dir"]),
        ("a*\\", [], ["a", "ab", "a\\"]),
        ("[[:nonsense:]]", [], ["n", "[", ""]),
        ("[[:xdigit:][:space:]]", ["f", " "], ["g"]),
        ("?", ["é", "\udcff"], ["éé"]),
        ("[é-ü]", ["é", "ö"], ["a"]),
        ("[[:digit:]]x", ["1x"], ["ax", "x"]),
        ("[a\\]b]", ["]", "b"], ["\\"]),
        ("a*\0b", [], ["a", "ab"]),
    ],
)
def test_a_glob_matches_the_whole_value(pattern: str, values: list[str], others: list[str]) -> None:
    glob = Glob(pattern)

    assert [value for value in values if not glob.matches(value)] == []
    assert [value for value in others if glob.matches(value)] == []


@given(PATTERNS, VALUES)
def test_a_glob_is_what_every_shell_takes_it_to_be(pattern: str, value: str) -> None:
    """Where Python's own matcher and the C library agree what a pattern means."""
    assert Glob(pattern).matches(value) == fnmatch.fnmatchcase(value, pattern)


@given(st.text("a*?[]!^-\\/.", max_size=8), st.text("a*?[]!^-\\/.", max_size=8))
def test_what_is_escaped_is_compared_as_it_is(text: str, value: str) -> None:
    glob = Glob("[x]|" + "".join(f"\\{character}" for character in text))

    assert glob.matches(text)
    assert glob.matches(value) == (value == text)


@given(st.lists(PATTERNS, min_size=1, max_size=3), VALUES)
def test_one_alternative_is_enough(patterns: list[str], value: str) -> None:
    alternatives = Glob("|".join([*patterns, "[x]"]))

    assert alternatives.matches(value) == any(Glob(one + "|[x]").matches(value) for one in patterns)


@given(st.text(), st.text())
def test_any_pattern_can_be_compared_with_any_value(pattern: str, value: str) -> None:
    assert Glob(pattern).matches(value) in (True, False)


def test_many_stars_take_no_time() -> None:
    assert not Glob("*a" * 200 + "b").matches("a" * 4096)


def test_globs_are_equal_by_their_text() -> None:
    assert Glob("a*") == Glob("a*")
    assert Glob("a*") != Glob("a")
