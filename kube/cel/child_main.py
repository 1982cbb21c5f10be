"""The process that evaluates: one question after the other, until nobody asks any more.

Its limits are the kernel's: it may use as much CPU as all values of one question are worth, and as
much memory as any expression needs. Whatever wants more ends it, be it in the midst of a library.
"""

from __future__ import annotations

import marshal
import os
import resource
import signal
import sys
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import IO, Any

import cel

from kube.cel.messages import FALSE, NEITHER, READY, SIZE_BYTES, TRUE

BASE_SECONDS = 0.2
"""How much CPU expressions may use, however few values they are about."""

VALUE_SECONDS = 0.0002
"""And for each value: several times of what 32 selectors take for a device."""

MEMORY_BYTES = 256 << 20
"""Of address space: the library and Python take a tenth of it."""

NICENESS = 10
"""Our other threads go first: a tenth of a CPU is left to it where they want all."""


def main() -> None:
    """Answer what is asked on stdin."""
    _limit()
    questions, answers = sys.stdin.buffer, sys.stdout.buffer
    _answer(answers, READY)
    left = 0.0
    while size := questions.read(SIZE_BYTES):
        is_first, expressions, values = marshal.loads(questions.read(int.from_bytes(size, "big")))
        left = (BASE_SECONDS if is_first else left) + VALUE_SECONDS * len(values)
        signal.setitimer(signal.ITIMER_PROF, left)
        found = evaluated(expressions, values)
        left, _ = signal.setitimer(signal.ITIMER_PROF, 0)
        _answer(answers, found)


def evaluated(expressions: Sequence[str], values: Sequence[Mapping[str, Any]]) -> bytes:
    """For each value the first answer that is not TRUE, else TRUE.

    Args:
        expressions: CEL, which calls a value `device`.
        values: Of the types of JSON; bytes stand for what CEL has no type for.
    """
    programs = _programs(tuple(expressions))
    return bytes(_evaluated(programs, value) for value in values)


def _evaluated(programs: Sequence[Any], value: Mapping[str, Any]) -> int:
    try:
        context = cel.Context({"device": value})
        for program in programs:
            found = program.execute(context) if program is not None else None
            if found is not True:
                return FALSE if found is False else NEITHER
    except BaseException:  # noqa: BLE001  The expression is a user's, and may upset the library.
        return NEITHER
    return TRUE


@lru_cache(maxsize=1)
def _programs(expressions: tuple[str, ...]) -> list[Any]:
    """As the library wants them; None for one that it cannot read.

    Those of one question alone are kept, so that nobody's memory counts as another's.
    """
    return [_program(each) for each in expressions]


def _program(expression: str) -> Any:
    try:
        return cel.compile(expression)
    except BaseException:  # noqa: BLE001  The same.
        return None


def _limit() -> None:
    """What the kernel is to hold; nothing of it takes a privilege."""
    os.nice(NICENESS)
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY_BYTES, MEMORY_BYTES))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    # The parent ends it by closing stdin; what a terminal sends is for the parent.
    signal.signal(signal.SIGINT, signal.SIG_IGN)


def _answer(answers: IO[bytes], found: bytes) -> None:
    answers.write(found)
    answers.flush()


if __name__ == "__main__":
    main()
