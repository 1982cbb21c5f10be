"""Prints the output of a view, for programs or for people."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from scheduler_plugin.asking.columns import Part, Table, lines_of
from scheduler_plugin.asking.shown import Shown
from scheduler_plugin.asking.view_settings import Reading

_ERASED = "\r\x1b[K"
"""Returns to the start of a terminal's line and erases the line."""


def show(shown: Shown, reading: Reading) -> None:
    """Print one view; an empty table becomes a sentence on standard error, as with kubectl."""
    if reading.output == "json":
        sys.stdout.write(_json(shown.plain))
    elif reading.output == "yaml":
        sys.stdout.write(_yaml(shown.plain))
    elif shown.nothing and not any(_has_lines(part) for part in shown.parts):
        sys.stderr.write(f"{shown.nothing}\n")
    else:
        lines = lines_of(shown.parts, is_terminal=_shows_styles())
        sys.stdout.write("".join(f"{line}\n" for line in lines))


def _json(plain: Any) -> str:
    import json

    return json.dumps(plain, indent=2) + "\n"


def _yaml(plain: Any) -> str:
    import json

    import yaml

    text: str = yaml.safe_dump(json.loads(json.dumps(plain)), sort_keys=False)
    return text


def _has_lines(part: Part) -> bool:
    return bool(part.lines) if isinstance(part, Table) else True


def _shows_styles() -> bool:
    """Whether the output is a terminal whose user has not turned colours off."""
    plain = os.environ.get("NO_COLOR") or os.environ.get("TERM") in ("dumb", "unknown")
    return sys.stdout.isatty() and not plain


def note(sentence: str) -> None:
    """Print a sentence for people on standard error, beside the output."""
    sys.stderr.write(f"kubectl moorage: {sentence}\n")


@contextmanager
def progress() -> Iterator[Any]:
    """Print the progress of reading on a terminal; yields the callable that reports it."""
    if not sys.stderr.isatty():
        yield lambda kind, count: None
        return

    def report(kind: str, count: int) -> None:
        sys.stderr.write(f"{_ERASED}reading {kind} ({count}) ...")
        sys.stderr.flush()

    try:
        yield report
    finally:
        sys.stderr.write(_ERASED)
        sys.stderr.flush()
