"""Simple demands of a DeviceClass's selectors, found without evaluating CEL.

    selectors ──► parts that must all hold (`a && b`) ──► those of the form `<path> == "text"`

Expressions of any other form are ignored: the class is then taken to select more devices than it
does, never fewer. So each demand that is found holds for each selected device.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from driver.api import ATTRIBUTE_CONFIGURATION, DRIVER_NAME

_TEXT = re.compile(r""""[^"\\\n]*"|'[^'\\\n]*'""")
_MARK = "\0"
"""Replaces each text, so that its content is not taken for operators."""

_UNCLEAR = re.compile(r"""["'\\?]|\|\||//""")
"""Texts of other forms, alternatives, comments: with them, no part must hold by itself."""

_DRIVER = "device.driver"
_DRIVER_ONLY = re.compile(rf"\s*device\.driver\s*==\s*({_TEXT.pattern})\s*")
_OURS = f'["{DRIVER_NAME}"]'
_CONFIGURATION = f"device.attributes{_OURS}.{ATTRIBUTE_CONFIGURATION}"
_FIELD_OF_OURS = re.compile(rf"device\.(attributes|capacity){re.escape(_OURS)}\.\w+(?![\w(])")


def demanded_drivers(expressions: Iterable[str | None]) -> tuple[str, ...]:
    """The drivers that a device must have; with more than one, no device matches.

    Attributes and capacities in the domain of Moorage's driver demand that driver.
    """
    found: dict[str, None] = {}
    for path, text in _demands(expressions):
        if path == _DRIVER and text is not None:
            found[text] = None
        elif _FIELD_OF_OURS.match(path):
            found[DRIVER_NAME] = None
    return tuple(found)


def selects_driver_only(expressions: Iterable[str | None]) -> bool:
    """Whether a class selects all devices of a driver, so that nothing is to be evaluated."""
    return all(_DRIVER_ONLY.fullmatch(each or "") for each in expressions)


def demanded_configuration(expressions: Iterable[str | None]) -> str:
    """The Configuration that a device must have, by its attribute; "" for none."""
    named = {text for path, text in _demands(expressions) if path == _CONFIGURATION and text}
    return named.pop() if len(named) == 1 else ""


def _demands(expressions: Iterable[str | None]) -> Iterator[tuple[str, str | None]]:
    """The path of each part, and the text that it must equal; None for any other demand."""
    for expression in expressions:
        for part, texts in _parts(expression or ""):
            path, _, value = part.partition("==")
            path = "".join(path.split())
            for text in texts:
                path = path.replace(_MARK, f'"{text}"', 1)
            yield path, texts[-1] if value.strip() == _MARK else None


def _parts(expression: str) -> Iterator[tuple[str, list[str]]]:
    """The parts that must all hold, with texts replaced by marks, and their texts."""
    texts = [text[1:-1] for text in _TEXT.findall(expression)]
    bare = _TEXT.sub(_MARK, expression)
    if _UNCLEAR.search(bare) or expression.count(_MARK):
        return
    before, taken = "", 0
    for part in bare.split("&&"):
        own = texts[taken : taken + part.count(_MARK)]
        taken += len(own)
        if _is_closed(before) and _is_closed(part):
            yield part, own
        before += part


def _is_closed(text: str) -> bool:
    """Whether all brackets are closed."""
    return all(text.count(a) == text.count(b) for a, b in ("()", "[]", "{}"))
