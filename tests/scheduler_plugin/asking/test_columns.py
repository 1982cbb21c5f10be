"""Columns: as wide as what they hold, and no line ends with a blank."""

from __future__ import annotations

from scheduler_plugin.asking.columns import RED, Styled, lines_of, styled, table


def test_columns_are_as_wide_as_their_widest_cell() -> None:
    found = table(("NAME", "CLASS", "N"), [("a-long-name", "x", 1), ("b", "onvif", 22)])

    assert list(lines_of([found])) == [
        "NAME          CLASS   N",
        "a-long-name   x       1",
        "b             onvif   22",
    ]


def test_no_line_ends_with_a_blank_and_no_cell_is_empty() -> None:
    empty = Styled((("", RED), ("", "")))
    found = table(("A", "B"), [("x", "y "), ("", None), ("z", empty)])

    assert list(lines_of([found, "text  ", ""])) == [
        "A   B",
        "x   y",
        "-   none",
        "z   -",
        "text",
        "",
    ]


def test_styles_take_no_room_and_are_for_terminals() -> None:
    found = table(("A", "B"), [(styled("FAIL", RED), "x")])

    assert list(lines_of([found]))[1] == "FAIL   x"
    assert list(lines_of([found], is_terminal=True))[1] == "\x1b[1;31mFAIL\x1b[0m   x"


def test_a_cell_is_one_line_and_has_no_control_characters() -> None:
    found = table(("A", "B"), [("x\x1b[31m", "one\ntwo\u2028three"), ("  kept", "ünï")])

    assert list(lines_of([found])) == [
        "A        B",
        "x [31m   one two three",
        "  kept   ünï",
    ]
