"""Places in the YAML of discovery details, as its reader counts them: lines and columns from 1."""

from __future__ import annotations

import yaml

Place = tuple[int, int]
"""Line and column."""

_ESCAPED = {'"': "\\", "'": "'"}
"""What precedes a quote or a backslash that is meant as it is, by the style of the string."""


def shown_place(place: Place) -> str:
    line, column = place
    return f"Line {line}, column {column}"


def start_of(node: yaml.Node) -> Place:
    return node.start_mark.line + 1, node.start_mark.column + 1


def places_in(source: str, node: yaml.ScalarNode) -> tuple[Place, ...]:
    """Where each character of a string stands, and where it ends; () where that is not known.

    It is known of a string on one line without any escapes but those of quotes and backslashes.
    """
    if node.start_mark.line != node.end_mark.line:
        return ()
    raw = source[node.start_mark.index : node.end_mark.index]
    line, column = start_of(node)
    return tuple((line, column + offset) for offset in _offsets(raw, node))


def _offsets(raw: str, node: yaml.ScalarNode) -> tuple[int, ...]:
    offset = len(node.style or "")
    offsets = []
    for character in node.value:
        offsets.append(offset)
        if character in "\"'\\" and raw[offset : offset + 1] == _ESCAPED.get(node.style or ""):
            offset += raw[offset + 1 : offset + 2] == character
        if raw[offset : offset + 1] != character:
            return ()
        offset += 1
    return (*offsets, offset)
