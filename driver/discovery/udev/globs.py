r"""Patterns of udev rules: shell globs, with `|` between alternatives.

The meaning is systemd-udevd's, so that a rule selects here what it selects there: a value without
`*`, `?` and `[` is compared as it is; otherwise each alternative is a pattern of `fnmatch(3)`
without flags (`*` and `?` match `/` and a leading dot, `\` escapes, `[!a]` and `[^a]` negate).
An empty alternative matches an empty value. `[.x.]` and `[=x=]` inside brackets are not known.

The standard library's `fnmatch` differs (no escapes, no `[^a]`, no `[[:digit:]]`).
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field

_NEVER = "(?!)"
_STAR = "*"
_OPEN = re.escape("[")
_MAGIC = frozenset("*?[")
_BRACKET = re.compile(r"\[([!^]?+)(\]?+(?>(?:\[:[a-z]+:\]|\\.|[^\]\\])*))\]", re.DOTALL)
_LONE_CLASS = re.compile(r"\[()(:[a-z]+:)\]")
_ITEM = re.compile(r"\[:([a-z]+):\]|(\\.|.)(?:-(\\.|.))?", re.DOTALL)
_CLASSES = {
    "alnum": "0-9A-Za-z",
    "alpha": "A-Za-z",
    "blank": r" \t",
    "cntrl": r"\x00-\x1f\x7f",
    "digit": "0-9",
    "graph": r"\x21-\x7e",
    "lower": "a-z",
    "print": r"\x20-\x7e",
    "punct": r"\x21-\x2f\x3a-\x40\x5b-\x60\x7b-\x7e",
    "space": r" \t\n\v\f\r",
    "upper": "A-Z",
    "xdigit": "0-9A-Fa-f",
}


@dataclass(frozen=True, slots=True)
class Glob:
    """A pattern, compiled once.

    Attributes:
        text: As it is written between the quotes of a rule.
    """

    text: str
    _words: frozenset[str] = field(init=False, repr=False, compare=False)
    _regex: re.Pattern[str] | None = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        words = frozenset(self.text.split("|"))
        regex = None
        if _MAGIC.intersection(self.text):
            regex = re.compile("|".join(_regex_of(word) for word in sorted(words)), re.DOTALL)
        object.__setattr__(self, "_words", words)
        object.__setattr__(self, "_regex", regex)

    def matches(self, value: str) -> bool:
        """Whether the whole value matches."""
        if self._regex is None:
            return value in self._words
        return self._regex.fullmatch(value) is not None


def _regex_of(pattern: str) -> str:
    """The regular expression of one alternative.

    All but the last `*` become atomic groups: the first place where the text between two stars is
    found is as good as any later one, and a pattern of many stars must not take for ever.
    """
    segments = [""]
    bracket = _BRACKET
    position = 0
    while position < len(pattern):
        piece, position = _piece(pattern, position, bracket)
        if piece == _OPEN:
            # Nothing closes this bracket, hence none after it, and the rest is not read again for
            # each. What was a class inside it is a bracket of its own now.
            bracket = _LONE_CLASS
        if piece == _STAR:
            segments.append("")
        else:
            segments[-1] += piece
    if len(segments) == 1:
        return segments[0]
    head, *middle, tail = segments
    return head + "".join(f"(?>.*?{text})" for text in middle if text) + ".*" + tail


def _piece(pattern: str, position: int, bracket: re.Pattern[str]) -> tuple[str, int]:
    """The next piece of a pattern as a regular expression, and where the one after it starts."""
    match pattern[position]:
        case "*":
            return _STAR, position + 1
        case "?":
            return ".", position + 1
        case "\\":
            escaped = pattern[position + 1 : position + 2]
            return (re.escape(escaped) if escaped else _NEVER), position + 2
        case "[" if found := bracket.match(pattern, position):
            return _set_of(found[1] != "", found[2]), found.end()
        case literal:
            return re.escape(literal), position + 1


def _set_of(negated: bool, body: str) -> str:
    members = ""
    for name, first, last in _ITEM.findall(body):
        if name:
            if name not in _CLASSES:
                return _NEVER
            members += _CLASSES[name]
        elif not last:
            members += re.escape(first[-1])
        elif first[-1] <= last[-1]:
            members += f"{re.escape(first[-1])}-{re.escape(last[-1])}"
    if negated:
        return f"[^{members}]" if members else "."
    return f"[{members}]" if members else _NEVER
