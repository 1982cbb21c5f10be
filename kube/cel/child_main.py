"""The child process: evaluates one request after the other until stdin is closed.

The kernel limits its CPU time, by the number of values of a request, and its memory. A request that
exceeds a limit ends the process, also inside of a library.
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
from kube.cel.quantity_functions import FUNCTIONS

BASE_SECONDS = 0.2
"""CPU time of a request, whatever the number of its values."""

VALUE_SECONDS = 0.0002
"""Additional CPU time for each value: several times what 32 selectors take for a device."""

MEMORY_BYTES = 256 << 20
"""Limit of address space: the library and Python take a tenth of it."""

NICENESS = 10
"""The parent has precedence: the child gets a tenth of a CPU if the parent uses all of it."""


def main() -> None:
    """Answer requests on stdin."""
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
    """For each value the first result that is not TRUE, else TRUE.

    Args:
        expressions: CEL, in which a value is called `device`.
        values: Values of JSON types, quantities as numbers of thousandths; bytes stand for a value
            that CEL has no type for.
    """
    programs, context = _programs(tuple(expressions)), _context()
    return bytes(_evaluated(programs, context, value) for value in values)


def _evaluated(programs: Sequence[Any], context: Any, value: Mapping[str, Any]) -> int:
    try:
        context.add_variable("device", value)
        for program in programs:
            found = program.execute(context) if program is not None else None
            if found is not True:
                return FALSE if found is False else NEITHER
    except KeyError:
        # kube-scheduler gives no device to a request that reads what the device does not have.
        return FALSE
    except BaseException:  # noqa: BLE001  The expression is a user's, and may upset the library.
        return NEITHER
    return TRUE


def _context() -> Any:
    context = cel.Context({})
    for name, function in FUNCTIONS.items():
        context.add_function(name, function)
    return context


@lru_cache(maxsize=1)
def _programs(expressions: tuple[str, ...]) -> list[Any]:
    """Compiled expressions; None for one that the library cannot read.

    Only those of the last request are cached, so that the memory of one request does not count
    against another.
    """
    return [_program(each) for each in expressions]


def _program(expression: str) -> Any:
    try:
        return cel.compile(expression)
    except BaseException:  # noqa: BLE001  The same.
        return None


def _limit() -> None:
    """Set the kernel's limits; this needs no privilege."""
    os.nice(NICENESS)
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY_BYTES, MEMORY_BYTES))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    # The parent ends this process by closing stdin; signals of a terminal are for the parent.
    signal.signal(signal.SIGINT, signal.SIG_IGN)


def _answer(answers: IO[bytes], found: bytes) -> None:
    answers.write(found)
    answers.flush()


if __name__ == "__main__":
    main()
