"""The process that evaluates: one question after the other, until nobody asks any more.

    stdin:  length ─ marshal of (is first, expressions, values)     what our own process writes
    stdout: READY once, then a byte for each value                  what may have been taken over

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
from importlib.machinery import EXTENSION_SUFFIXES, ExtensionFileLoader, FileFinder
from importlib.util import find_spec, module_from_spec
from typing import IO, Any

READY = b"."

TRUE, FALSE, NEITHER = b"tf?"
"""`NEITHER`: what cannot be evaluated, or is no truth value."""

SIZE_BYTES = 4
"""Of the length of a question."""

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
    _library()
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
        context = _library().Context({"device": value})
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
        return _library().compile(expression)
    except BaseException:  # noqa: BLE001  The same.
        return None


@lru_cache(maxsize=1)
def _library() -> Any:
    """Its compiled part: the package itself imports a command line, and what colours that."""
    package = find_spec("cel")
    folders = package.submodule_search_locations if package is not None else None
    assert folders, "it is installed with this program"
    loading = (ExtensionFileLoader, EXTENSION_SUFFIXES)
    spec = FileFinder(folders[0], loading).find_spec("cel")
    assert spec is not None, "the library has a compiled part"
    assert spec.loader is not None, "which is a file"
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


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
