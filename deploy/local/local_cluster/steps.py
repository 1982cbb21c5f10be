"""Steps that take long: what is waited for, how long that took last time, and this time."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from time import monotonic

from local_cluster.cache import cache_dir
from local_cluster.files import locked, read_json, write_json
from local_cluster.progress import say

LEAST_SECONDS = 1.0
"""A step that was faster is not remembered: it found its work done."""


@contextmanager
def step(what: str) -> Iterator[None]:
    """Say that `what` begins, and with how many seconds it ended; a failed one is not remembered.

    Args:
        what: The step's name, the same each time: the last time is found by it.
    """
    before = _remembered().get(what)
    say(f"{what} ..." if before is None else f"{what} ... (last time {before:.0f} s)")
    started = monotonic()
    yield
    seconds = monotonic() - started
    say(f"{what}: done in {seconds:.0f} s")
    if seconds >= LEAST_SECONDS:
        _remember(what, seconds)


def _file() -> Path:
    return cache_dir() / "seconds.json"


def _remembered() -> Mapping[str, float]:
    found = read_json(_file())
    return found if isinstance(found, dict) else {}


def _remember(what: str, seconds: float) -> None:
    with locked(_file().with_suffix(".lock")):
        write_json(_file(), {**_remembered(), what: round(seconds, 1)})
