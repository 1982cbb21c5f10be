r"""Patterns of udev rules: shell globs, with `|` between alternatives.

The meaning is systemd-udevd's, so that a rule selects here what it selects there: a value without
`*`, `?` and `[` is compared as it is; otherwise each alternative is a pattern of the C library's
`fnmatch(3)` without flags (`*` and `?` match `/` and a leading dot, `\` escapes, `[!a]` and `[^a]`
negate). An empty alternative matches an empty value.

The standard library's `fnmatch` differs (no escapes, no `[^a]`, no `[[:digit:]]`).
"""

from __future__ import annotations

import ctypes
from dataclasses import dataclass, field

_fnmatch = ctypes.CDLL(None).fnmatch
_fnmatch.argtypes = (ctypes.c_char_p, ctypes.c_char_p, ctypes.c_int)

_MAGIC = frozenset("*?[")
_END = "\0"
"""Where the C library takes a text to end; libudev's values hold none."""


@dataclass(frozen=True, slots=True)
class Glob:
    """A pattern, told into its alternatives once.

    Attributes:
        text: As it is written between the quotes of a rule.
    """

    text: str
    _words: frozenset[str] = field(init=False, repr=False, compare=False)
    _patterns: tuple[bytes, ...] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        words = frozenset(word for word in self.text.split("|") if _END not in word)
        is_magic = not _MAGIC.isdisjoint(self.text)
        object.__setattr__(self, "_words", frozenset() if is_magic else words)
        object.__setattr__(self, "_patterns", tuple(map(_bytes, words)) if is_magic else ())

    def matches(self, value: str) -> bool:
        """Whether the whole value matches."""
        if not self._patterns:
            return value in self._words
        text = _bytes(value)
        return any(_fnmatch(pattern, text, 0) == 0 for pattern in self._patterns)


def _bytes(text: str) -> bytes:
    return text.encode(errors="surrogateescape")  # what is no UTF-8 is read as `os.fsdecode` does
