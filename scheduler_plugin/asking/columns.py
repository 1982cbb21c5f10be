"""Columns as kubectl prints them: as wide as their widest cell, and never cut.

    NAME     CLASS   USAGE
    vision   onvif   1

A terminal wraps a line that is too long for it, so no name is cut. No line ends with a blank. Only
terminals get styles, which take no width.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

BETWEEN = "   "
NOTHING = "-"
"""The text of an empty cell, so that the third word of a line belongs to the third column."""

BOLD, RED, GREEN, YELLOW, DIM = "1", "1;31", "32", "33", "2"


@dataclass(frozen=True, slots=True)
class Styled:
    """Text in runs, each with its style for terminals; "" for no style."""

    runs: tuple[tuple[str, str], ...]

    @property
    def plain(self) -> str:
        """The text alone."""
        return "".join(text for text, _ in self.runs)


Cell = Styled | str | int | None
"""A cell of a table; a figure of None is unlimited."""


@dataclass(frozen=True, slots=True)
class Table:
    """Heads, and lines with as many cells."""

    heads: tuple[str, ...]
    lines: tuple[tuple[Cell, ...], ...]


Part = Table | Styled | str
"""A part of a view: a table, or one line of text."""


def table(heads: Sequence[str], lines: Iterable[Iterable[Cell]]) -> Table:
    """A table of these lines."""
    return Table(tuple(heads), tuple(map(tuple, lines)))


def styled(text: str, style: str) -> Styled:
    """A text in one style."""
    return Styled(((text, style),))


def lines_of(parts: Iterable[Part], *, is_terminal: bool = False) -> Iterator[str]:
    """All lines without line ends; with styles for a terminal."""
    for part in parts:
        if isinstance(part, Table):
            yield from _of_table(part, is_terminal)
        else:
            yield _line((_styled(part),), (), is_terminal)


def _of_table(found: Table, is_terminal: bool) -> Iterator[str]:
    rows = [tuple(map(_filled, row)) for row in (found.heads, *found.lines)]
    widths = [max(map(_width, column)) for column in zip(*rows, strict=True)]
    return (_line(row, widths, is_terminal) for row in rows)


def _filled(cell: Cell) -> Styled:
    found = _styled("none" if cell is None else cell)
    return found if found.plain else styled(NOTHING, "")


def _styled(text: Styled | str | int) -> Styled:
    """The text without control characters, which must not reach a terminal."""
    runs = text.runs if isinstance(text, Styled) else ((str(text), ""),)
    return Styled(tuple((_printable(said), style) for said, style in runs))


def _printable(text: str) -> str:
    return text if text.isprintable() else "".join(c if c.isprintable() else " " for c in text)


def _width(cell: Styled) -> int:
    return len(cell.plain)


def _line(cells: Sequence[Styled], widths: Sequence[int], is_terminal: bool) -> str:
    """One line; blanks are written only before other text, so that none end the line."""
    line, blanks = "", ""
    for number, cell in enumerate(cells):
        for text, style in cell.runs:
            if said := text.rstrip(" "):
                shown = f"\x1b[{style}m{said}\x1b[0m" if style and is_terminal else said
                line, blanks = f"{line}{blanks}{shown}", ""
            blanks += " " * (len(text) - len(said))
        if number < len(widths):
            blanks += " " * (widths[number] - _width(cell)) + BETWEEN
    return line
