"""What the selectors of a DeviceClass demand in plain words, read without evaluating CEL.

    selectors ──► the parts that all must hold (`a && b`) ──► those of the form `<path> == "text"`

Whatever is written otherwise demands nothing: the class then may select more devices than it does,
never fewer. So what is found is true of each device that the class selects.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from driver.api import ATTRIBUTE_CONFIGURATION, DRIVER_NAME

_TEXT = re.compile(r""""[^"\\\n]*"|'[^'\\\n]*'""")
_MARK = "\0"
"""Stands for a text, so that what is written in one is not taken for an operator."""

_UNCLEAR = re.compile(r"""["'\\?]|\|\||//""")
"""Texts of other forms, alternatives, comments: then no part is known to hold by itself."""

_DRIVER = "device.driver"
_OURS = f'["{DRIVER_NAME}"]'
_CONFIGURATION = f"device.attributes{_OURS}.{ATTRIBUTE_CONFIGURATION}"
_FIELD_OF_OURS = re.compile(rf"device\.(attributes|capacity){re.escape(_OURS)}\.\w+(?![\w(])")


def demanded_drivers(expressions: Iterable[str | None]) -> tuple[str, ...]:
    """The drivers of which a device must be; of more than one no device is.

    Attributes and capacities in the domain of our driver are those of its devices.
    """
    found: dict[str, None] = {}
    for path, text in _demands(expressions):
        if path == _DRIVER and text is not None:
            found[text] = None
        elif _FIELD_OF_OURS.match(path):
            found[DRIVER_NAME] = None
    return tuple(found)


def demanded_configuration(expressions: Iterable[str | None]) -> str:
    """The Configuration that a device must be of, as devices name it; "" where none is named."""
    named = {text for path, text in _demands(expressions) if path == _CONFIGURATION and text}
    return named.pop() if len(named) == 1 else ""


def _demands(expressions: Iterable[str | None]) -> Iterator[tuple[str, str | None]]:
    """What each part begins with; beside it the text that it must be, None for another demand."""
    for expression in expressions:
        for part, texts in _parts(expression or ""):
            path, _, value = part.partition("==")
            path = "".join(path.split())
            for text in texts:
                path = path.replace(_MARK, f'"{text}"', 1)
            yield path, texts[-1] if value.strip() == _MARK else None


def _parts(expression: str) -> Iterator[tuple[str, list[str]]]:
    """The parts that must all hold, their texts replaced by marks, and the texts."""
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
    """Whether each bracket that is opened is closed."""
    return all(text.count(a) == text.count(b) for a, b in ("()", "[]", "{}"))
