"""Columns as kubectl prints them: as wide as what they hold, with blanks between, and never cut.

    NAME     CLASS   USAGE
    vision   onvif   1

A line may be longer than the terminal is wide: the terminal wraps it, and no name loses a letter.
No line ends with a blank. Styles are for terminals alone, and take no room.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

BETWEEN = "   "
NOTHING = "-"
"""Stands in an empty cell, so that the third word of a line is of the third column."""

BOLD, RED, GREEN, YELLOW, DIM = "1", "1;31", "32", "33", "2"


@dataclass(frozen=True, slots=True)
class Styled:
    """Text in runs, each with a style that a terminal shows it in; "" for none."""

    runs: tuple[tuple[str, str], ...]

    @property
    def plain(self) -> str:
        """The text alone."""
        return "".join(text for text, _ in self.runs)


Cell = Styled | str | int | None
"""Of a table; a figure that is None has no end."""


@dataclass(frozen=True, slots=True)
class Table:
    """Heads, and lines of as many cells."""

    heads: tuple[str, ...]
    lines: tuple[tuple[Cell, ...], ...]


Part = Table | Styled | str
"""Of what is shown: a table, or one line of text."""


def table(heads: Sequence[str], lines: Iterable[Iterable[Cell]]) -> Table:
    """A table of these lines."""
    return Table(tuple(heads), tuple(map(tuple, lines)))


def styled(text: str, style: str) -> Styled:
    """A text in one style."""
    return Styled(((text, style),))


def lines_of(parts: Iterable[Part], *, is_terminal: bool = False) -> Iterator[str]:
    """All lines, without their ends; with styles on a terminal."""
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
    """Control characters of names and messages never reach a terminal."""
    runs = text.runs if isinstance(text, Styled) else ((str(text), ""),)
    return Styled(tuple((_printable(said), style) for said, style in runs))


def _printable(text: str) -> str:
    return text if text.isprintable() else "".join(c if c.isprintable() else " " for c in text)


def _width(cell: Styled) -> int:
    return len(cell.plain)


def _line(cells: Sequence[Styled], widths: Sequence[int], is_terminal: bool) -> str:
    """Blanks are written when something follows them, so that none end the line."""
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
