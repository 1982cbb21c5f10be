"""Parses a udev rule, such as `SUBSYSTEM=="block", ATTR{size}!="0"`, into its keys.

Every error has its column: the reader of the message sees the rule, not the parser.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple, NoReturn

from driver.discovery.details import shown
from driver.discovery.udev.rules import NAMED_KEYS, PLURAL_KEYS, READERS, Glob, MatchKey, Rule

_RANK = {key: rank for rank, key in enumerate((*READERS, *PLURAL_KEYS))}
_KEYS = ", ".join(sorted(_RANK))
_UDEVD_ONLY = frozenset(
    {"ACTION", "CONST", "NAME", "PROGRAM", "RESULT", "SYMLINK", "SYSCTL", "TEST"}
)
_ACTIONS = frozenset(
    {"GOTO", "GROUP", "IMPORT", "LABEL", "MODE", "OPTIONS", "OWNER", "RUN", "SECLABEL", "WAIT_FOR"}
)

_BETWEEN = re.compile(r"[\s,]*")
_KEY = re.compile(r"[^\s,={}\"!+:-]+")
_NAME = re.compile(r"(?:\{([^}]*)\})?")
_OPERATOR = re.compile(r"\s*(==|!=|\+=|-=|:=|=)\s*")
_VALUE = re.compile(r'"((?:\\"|[^"\\]|\\(?!"))*)"', re.DOTALL)


class Flaw(NamedTuple):
    """An error in a rule.

    Attributes:
        column: Its column in the rule, from 1.
    """

    column: int
    sentence: str


def parse_rule(text: str) -> Rule | tuple[Flaw, ...]:
    """A rule, or every error in it.

    Any number of commas and blanks may stand between keys, as for udevd. A rule without a key is
    refused: it would select every device of the node.
    """
    parser = _Parser(text)
    keys = sorted(parser.keys(), key=lambda key: _RANK[key.key])
    if parser.flaws:
        return tuple(parser.flaws)
    if not keys:
        return (Flaw(1, "a rule without a key would select every device."),)
    return Rule(
        tuple(key for key in keys if key.key not in PLURAL_KEYS),
        tuple(key for key in keys if key.key in PLURAL_KEYS),
    )


class _UnreadableError(Exception):
    """Raised when the rest of a rule cannot be split into keys."""


class _Parser:
    """Parses one rule; errors are collected in `flaws`."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._position = 0
        self.flaws: list[Flaw] = []

    def keys(self) -> Iterator[MatchKey]:
        try:
            while self._take(_BETWEEN).end() < len(self._text):
                yield from self._match_key()
        except _UnreadableError:
            return

    def _match_key(self) -> Iterator[MatchKey]:
        flaws = len(self.flaws)
        key = self._take(_KEY, 'a key is expected here, as in KERNEL=="video*".')
        name = self._take(_NAME)
        if self._text.startswith("{", self._position):
            self._stop("this brace is never closed.")
        operator = self._take(_OPERATOR, 'an operator is expected here, "==" or "!=".')
        value = self._take(_VALUE, self._value_sentence())
        self._check_key(key)
        self._check_name(key[0], name)
        self._check_operator(key[0], operator)
        if len(self.flaws) == flaws:
            glob = Glob(value[1].replace('\\"', '"'))
            yield MatchKey(key[0], name[1], operator[1] == "!=", glob)

    def _check_key(self, key: re.Match[str]) -> None:
        if key[0] in _ACTIONS:
            self._flaw(key.start(), f"{key[0]} is an action, and a rule here only selects devices.")
        elif key[0] in _UDEVD_ONLY:
            self._flaw(key.start(), f"only udevd itself can match {key[0]}; there are {_KEYS}.")
        elif key[0] not in _RANK:
            self._flaw(key.start(), f"{shown(key[0])} is no key; there are {_KEYS}.")

    def _check_name(self, key: str, name: re.Match[str]) -> None:
        if key not in _RANK:
            return
        if key not in NAMED_KEYS:
            if name[1] is not None:
                self._flaw(name.start(), f"{key} takes no name in braces.")
        elif not name[1]:
            self._flaw(name.start(), f"{key} needs a name in braces, as in {key}{{name}}.")
        elif sentence := _name_flaw(key, name[1]):
            self._flaw(name.start(1), sentence)

    def _check_operator(self, key: str, operator: re.Match[str]) -> None:
        if key in _RANK and operator[1] not in ("==", "!="):
            sentence = f'"{operator[1]}" assigns, and a rule here only compares: "==" or "!=".'
            self._flaw(operator.start(1), sentence)

    def _value_sentence(self) -> str:
        if self._text.startswith('"', self._position):
            return "this quote is never closed."
        return "a value in double quotes is expected here."

    def _take(self, pattern: re.Pattern[str], otherwise: str = "") -> re.Match[str]:
        found = pattern.match(self._text, self._position)
        if found is None:
            self._stop(otherwise)
        self._position = found.end()
        return found

    def _stop(self, sentence: str) -> NoReturn:
        self._flaw(self._position, sentence)
        raise _UnreadableError

    def _flaw(self, position: int, sentence: str) -> None:
        self.flaws.append(Flaw(position + 1, sentence))


def _name_flaw(key: str, name: str) -> str | None:
    """Why a name in braces is refused; None if it is not.

    The name of an attribute is a path below the device's folder. A path out of that folder would
    let a rule test the content of any file of the node.
    """
    if not name.isprintable():
        return "the name holds a character that cannot be printed."
    if key == "ENV":
        return None
    if name.startswith("[") or "$" in name or "%" in name:
        return "substitutions ($, % and [subsystem/kernel]) are udevd's alone."
    if not {"", ".", ".."}.isdisjoint(name.split("/")):
        return "an attribute is a path inside the device's folder."
    return None
