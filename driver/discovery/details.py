"""Discovery details: the YAML that a Configuration holds for its handler, read field by field.

Only fields with a word or a list of words are known to handlers, so nothing is constructed: tags
have no effect, aliases are not expanded, and anchors that hold themselves do no harm. Words mean
what YAML 1.2 says, as for Akri (`yes` is a word and not a boolean).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import NamedTuple

import yaml

from driver.api import Problem

DETAILS = "spec.discoveryHandler.discoveryDetails"
LONGEST_DETAILS = 64 * 1024
"""Characters; the parser takes up to a second for this much."""

_STRING = "tag:yaml.org,2002:str"
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
    """A string of the details, with its field's path."""

    path: str
    value: str


class Fields:
    """The fields of one text of discovery details.

    Read them by name; a field that is absent gives its default, a field that is wrong gives it
    too, and `problems` names everything that is wrong, unknown fields included.
    """

    def __init__(self, text: str, known: Iterable[str]) -> None:
        self.problems: list[Problem] = []
        self._nodes: Mapping[str, yaml.Node] = {}
        known = sorted(known)
        root = self._compose(text)
        if isinstance(root, yaml.MappingNode):
            self._nodes = dict(self._entries(root, known))
        elif root is not None:
            self._add(DETAILS, root, f"fields are expected here: {', '.join(known)}.")
        self._readable = isinstance(root, yaml.MappingNode) or not self.problems

    def __contains__(self, name: str) -> bool:
        return name in self._nodes

    def strings(self, name: str) -> tuple[Text, ...]:
        """A list of strings that must be given and not be empty."""
        path = f"{DETAILS}.{name}"
        node = self._nodes.get(name)
        if node is None:
            if self._readable:
                self.problems.append(Problem(path, "A list of strings must be given."))
            return ()
        if not isinstance(node, yaml.SequenceNode) or not node.value:
            self._add(path, node, "a list of strings is expected here, with at least one.")
            return ()
        texts = (
            (f"{path}[{i}]", self._string(f"{path}[{i}]", n)) for i, n in enumerate(node.value)
        )
        return tuple(Text(path, value) for path, value in texts if value is not None)

    def string(self, name: str, default: str) -> str:
        """A string that may be absent."""
        node = self._nodes.get(name)
        value = None if node is None else self._string(f"{DETAILS}.{name}", node)
        return default if value is None else value

    def boolean(self, name: str, default: bool) -> bool:
        """A boolean that may be absent."""
        node = self._nodes.get(name)
        if node is None:
            return default
        if not isinstance(node, yaml.ScalarNode) or node.style or node.value not in _BOOLEANS:
            self._add(f"{DETAILS}.{name}", node, "true or false is expected here.")
            return default
        return _BOOLEANS[node.value]

    def _compose(self, text: str) -> yaml.Node | None:
        if len(text) > LONGEST_DETAILS:
            sentence = f"{len(text)} characters are too many; {LONGEST_DETAILS} may be given."
            self.problems.append(Problem(DETAILS, sentence))
            return None
        try:
            return yaml.compose(text, Loader=yaml.BaseLoader)
        except RecursionError:
            sentence = "The YAML is nested too deeply."
        except yaml.YAMLError as error:
            sentence = _sentence(error, text)
        except (ValueError, OverflowError):  # "\UFFFFFFFF", a %YAML directive of 5,000 digits
            sentence = "The YAML holds a character or a number that there is not."
        self.problems.append(Problem(DETAILS, sentence))
        return None

    def _entries(self, root: yaml.MappingNode, known: list[str]) -> Iterator[tuple[str, yaml.Node]]:
        seen: set[str] = set()
        for key, value in root.value:
            name = key.value if isinstance(key, yaml.ScalarNode) else "?"
            path = (
                f"{DETAILS}.{name}" if _PLAIN_NAME.fullmatch(name) else f"{DETAILS}[{shown(name)}]"
            )
            if name not in known:
                self._add(path, key, f"unknown field; there are {', '.join(known)}.")
            elif name in seen:
                self._add(path, key, "this field is given twice.")
            else:
                yield name, value
            seen.add(name)

    def _string(self, path: str, node: yaml.Node) -> str | None:
        if not isinstance(node, yaml.ScalarNode) or node.tag != _STRING:
            self._add(path, node, "a string is expected here.")
        elif node.style is None and _NOT_A_STRING.fullmatch(node.value):
            self._add(path, node, "a string is expected here; put it in quotes if it is one.")
        elif not _is_text(node.value):
            self._add(path, node, "half a character (a lone surrogate) is no text.")
        else:
            return str(node.value)
        return None

    def _add(self, path: str, node: yaml.Node, sentence: str) -> None:
        self.problems.append(Problem(path, f"{_place(node.start_mark)}: {sentence}"))


def shown(text: str) -> str:
    """Foreign text as a sentence may quote it: printable, and not too long."""
    short = text if len(text) <= 60 else f"{text[:60]}…"
    return f'"{short}"' if short.isprintable() else ascii(short)


def _is_text(value: str) -> bool:
    return not any("\ud800" <= character <= "\udfff" for character in value)


def _place(mark: yaml.Mark) -> str:
    return f"Line {mark.line + 1}, column {mark.column + 1}"


def _sentence(error: yaml.YAMLError, text: str) -> str:
    if isinstance(error, yaml.reader.ReaderError):
        before = text[: error.position].split("\n")
        place = f"Line {len(before)}, column {len(before[-1]) + 1}"
        return f"{place}: YAML may not hold the character U+{error.character:04X}."
    if isinstance(error, yaml.MarkedYAMLError) and error.problem_mark is not None:
        return f"{_place(error.problem_mark)}: this is not YAML, {error.problem:.200}."
    return "This is not YAML."
