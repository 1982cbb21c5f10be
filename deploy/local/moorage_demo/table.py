"""The table that the demo prints, line by line, as things happen."""

from __future__ import annotations

import textwrap
import time
from dataclasses import dataclass, field

_STEP_WIDTH = 15
_OBJECT_WIDTH = 34
_SHOWN_WIDTH = 86


@dataclass
class Table:
    """Lines of step, object and what it shows, each with the seconds since the first line."""

    started: float = field(default_factory=time.monotonic)

    def head(self) -> None:
        self._line("after", "step", "object", "what it shows")
        self._line("─" * 7, "─" * _STEP_WIDTH, "─" * _OBJECT_WIDTH, "─" * 40)

    def row(self, step: str, name: str, *shown: str) -> None:
        """A line; what does not fit into one goes on below."""
        seconds = f"{time.monotonic() - self.started:5.1f} s"
        first, *others = [part for text in shown for part in _parts(text)] or [""]
        self._line(seconds, step, name, first)
        for more in others:
            self._line("", "", "", more)

    def _line(self, seconds: str, step: str, name: str, shown: str) -> None:
        line = f"{seconds:>7}  {step:{_STEP_WIDTH}}  {name:{_OBJECT_WIDTH}}  {shown}"
        print(line.rstrip(), flush=True)


def _parts(text: str) -> list[str]:
    return textwrap.wrap(text, _SHOWN_WIDTH, break_long_words=False, break_on_hyphens=False)
