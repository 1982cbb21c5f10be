"""Discovery details: the YAML that a Configuration holds for its handler, read field by field.

A field of a handler holds a word, a list of words, or more fields. So the reader constructs
nothing: tags have no effect, aliases are not expanded, and an anchor that contains itself does no
harm. Words mean what YAML 1.2 says, as for Akri (`yes` is a word and not a boolean).
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import NamedTuple

import yaml

from driver.api import Problem

DETAILS = "spec.discoveryHandler.discoveryDetails"
LONGEST_DETAILS = 64 * 1024
"""Characters."""

DEEPEST_DETAILS = 32
"""Levels of nested lists and fields. Beyond some hundred the parser takes seconds, or fails."""

MOST_TOKENS = 20_000
"""Words and signs. The parser takes 0.2 s for so many."""

_STRING = "tag:yaml.org,2002:str"
_NULLS = frozenset(("", "~", "null", "Null", "NULL"))
_INTEGER = re.compile(r"[-+]?[0-9]{1,9}")
_PLAIN_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_-]{0,62}")
_BOOLEANS = dict.fromkeys(("true", "True", "TRUE"), True) | dict.fromkeys(
    ("false", "False", "FALSE"), False
)
_NOT_A_STRING = re.compile(
    r"true|True|TRUE|false|False|FALSE|~|null|Null|NULL|"
    r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?|0x[0-9a-fA-F]+|0o[0-7]+|"
    r"[-+]?\.(inf|Inf|INF)|\.(nan|NaN|NAN)|"
)


class Text(NamedTuple):
    """A string of the details.

    Attributes:
        path: The field's path.
        start: Line and column of its first character in the text of the details.
    """

    path: str
    value: str
    start: str


class Section:
    """Some fields of discovery details, read by name.

    An absent field has its default value, and so has an invalid field. `problems` has a Problem
    for each invalid or unknown field.
    """

    def __init__(
        self, path: str, node: yaml.Node | None, known: Iterable[str], problems: list[Problem]
    ) -> None:
        self.problems = problems
        self._path = path
        self._nodes: Mapping[str, yaml.Node] = {}
        known = sorted(known)
        if isinstance(node, yaml.MappingNode):
            self._nodes = dict(self._entries(node, known))
        elif node is not None:
            self._add(self._path, node, f"fields are expected here: {', '.join(known)}.")
        self._readable = isinstance(node, yaml.MappingNode) or not self.problems

    def __contains__(self, name: str) -> bool:
        return name in self._nodes

    def section(self, name: str, known: Iterable[str]) -> Section | None:
        """The fields inside a field; None if that field is absent."""
        node = self._nodes.get(name)
        if node is None or _is_null(node):
            return None
        return Section(f"{self._path}.{name}", node, known, self.problems)

    def strings(self, name: str, *, empty: bool = False) -> tuple[Text, ...]:
        """A required list of strings.

        Args:
            name: The field's name.
            empty: Whether the list may be empty.
        """
        path = f"{self._path}.{name}"
        node = self._nodes.get(name)
        if node is None:
            if self._readable:
                self.problems.append(Problem(path, "A list of strings must be given."))
            return ()
        if not isinstance(node, yaml.SequenceNode) or not (node.value or empty):
            least = "" if empty else ", with at least one"
            self._add(path, node, f"a list of strings is expected here{least}.")
            return ()
        texts = (self._text(f"{path}[{i}]", item) for i, item in enumerate(node.value))
        return tuple(text for text in texts if text is not None)

    def string(self, name: str, default: str) -> str:
        """An optional string."""
        node = self._nodes.get(name)
        text = None if node is None else self._text(f"{self._path}.{name}", node)
        return default if text is None else text.value

    def choice(self, name: str, choices: Collection[str], default: str) -> str:
        """One of `choices`; optional."""
        value = self.string(name, default)
        if value not in choices:
            sentence = f"{shown(value)} is none of {', '.join(choices)}."
            self._add(f"{self._path}.{name}", self._nodes[name], sentence)
            return default
        return value

    def integer(self, name: str, default: int, within: range) -> int:
        """An optional whole number."""
        node = self._nodes.get(name)
        if node is None:
            return default
        plain = isinstance(node, yaml.ScalarNode) and node.style is None
        if not plain or not _INTEGER.fullmatch(node.value) or int(node.value) not in within:
            sentence = f"a whole number from {within[0]} to {within[-1]} is expected here."
            self._add(f"{self._path}.{name}", node, sentence)
            return default
        return int(node.value)

    def boolean(self, name: str, default: bool) -> bool:
        """An optional boolean."""
        node = self._nodes.get(name)
        if node is None:
            return default
        if not isinstance(node, yaml.ScalarNode) or node.style or node.value not in _BOOLEANS:
            self._add(f"{self._path}.{name}", node, "true or false is expected here.")
            return default
        return _BOOLEANS[node.value]

    def _entries(self, root: yaml.MappingNode, known: list[str]) -> Iterator[tuple[str, yaml.Node]]:
        seen: set[str] = set()
        for key, value in root.value:
            name = key.value if isinstance(key, yaml.ScalarNode) else "?"
            plain = _PLAIN_NAME.fullmatch(name)
            path = f"{self._path}.{name}" if plain else f"{self._path}[{shown(name)}]"
            if name not in known:
                self._add(path, key, f"unknown field; there are {', '.join(known)}.")
            elif name in seen:
                self._add(path, key, "this field is given twice.")
            else:
                yield name, value
            seen.add(name)

    def _text(self, path: str, node: yaml.Node) -> Text | None:
        if not isinstance(node, yaml.ScalarNode) or node.tag != _STRING:
            self._add(path, node, "a string is expected here.")
        elif node.style is None and _NOT_A_STRING.fullmatch(node.value):
            self._add(path, node, "a string is expected here; put it in quotes if it is one.")
        elif not _is_text(node.value):
            self._add(path, node, "a lone surrogate (half a character) is not text.")
        else:
            return Text(path, str(node.value), _start_of(node))
        return None

    def _add(self, path: str, node: yaml.Node, sentence: str) -> None:
        self.problems.append(Problem(path, f"{_start_of(node)}: {sentence}"))


class Fields(Section):
    """All fields of one text of discovery details."""

    def __init__(self, text: str, known: Iterable[str]) -> None:
        problems: list[Problem] = []
        super().__init__(DETAILS, _compose(text, problems), known, problems)


def shown(text: str) -> str:
    """Text from outside as an error may quote it: printable, at most 61 characters."""
    short = text if len(text) <= 60 else f"{text[:60]}…"
    return f'"{short}"' if short.isprintable() else ascii(short)


class _TooMuchError(yaml.YAMLError):
    """Raised when the YAML exceeds a limit; the text says which one."""


class _Loader(yaml.BaseLoader):
    """Parses words, within limits: the event loop parses what users write."""

    def get_token(self) -> yaml.Token:
        if self.tokens_taken >= MOST_TOKENS:
            raise _TooMuchError(f"is too long: more than {MOST_TOKENS} words and signs")
        token: yaml.Token = super().get_token()  # type: ignore[no-untyped-call]
        return token

    def fetch_flow_collection_start(self, token: type[yaml.Token]) -> None:
        self._descend(self.flow_level)
        super().fetch_flow_collection_start(token)

    def add_indent(self, column: int) -> bool:
        self._descend(len(self.indents))
        return super().add_indent(column)

    def _descend(self, depth: int) -> None:
        if depth >= DEEPEST_DETAILS:
            raise _TooMuchError(f"is nested too deeply: more than {DEEPEST_DETAILS} levels")


def _compose(text: str, problems: list[Problem]) -> yaml.Node | None:
    if len(text) > LONGEST_DETAILS:
        sentence = f"{len(text)} characters are too many; {LONGEST_DETAILS} may be given."
        problems.append(Problem(DETAILS, sentence))
        return None
    try:
        return yaml.compose(text, Loader=_Loader)
    except _TooMuchError as error:
        sentence = f"The YAML {error}."
    except yaml.YAMLError as error:
        sentence = _sentence(error, text)
    except (ValueError, OverflowError):  # "\UFFFFFFFF", a %YAML directive of 5,000 digits
        sentence = "The YAML has an invalid character or number."
    problems.append(Problem(DETAILS, sentence))
    return None


def _shown_place(line: int, column: int) -> str:
    """Line and column, counted from 1; the YAML reader counts from 0."""
    return f"Line {line + 1}, column {column + 1}"


def _start_of(node: yaml.Node) -> str:
    return _shown_place(node.start_mark.line, node.start_mark.column)


def _is_null(node: yaml.Node) -> bool:
    plain = isinstance(node, yaml.ScalarNode) and node.style is None
    return plain and node.value in _NULLS


def _is_text(value: str) -> bool:
    return not any("\ud800" <= character <= "\udfff" for character in value)


def _sentence(error: yaml.YAMLError, text: str) -> str:
    if isinstance(error, yaml.reader.ReaderError):
        before = text[: error.position].split("\n")
        place = _shown_place(len(before) - 1, len(before[-1]))
        return f"{place}: YAML may not hold the character U+{error.character:04X}."
    if isinstance(error, yaml.MarkedYAMLError) and error.problem_mark is not None:
        place = _shown_place(error.problem_mark.line, error.problem_mark.column)
        return f"{place}: this is not YAML, {error.problem:.200}."
    return "This is not YAML."
