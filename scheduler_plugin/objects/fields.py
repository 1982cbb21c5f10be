"""Fields of foreign objects that are read.

An absent field and null mean the same, as in the Kubernetes API. Of what comes by the thousand, a
shape names the fields that are read, and `read_as` reads them at once: a call for each field would
take several times as long. Whatever else an object has is not looked at. The API server has checked
all types before; an object that is odd nevertheless raises, and its store keeps what it had of it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Annotated, Any, TypeAlias, TypeVar

import msgspec

from driver.api import Problem

JsonObject: TypeAlias = Mapping[str, Any]

Set = Annotated[str, msgspec.Meta(min_length=1)]
"""A string that every stored object has."""

T = TypeVar("T")


class UnreadableError(ValueError):
    """Raised where an object cannot be what it says it is, with the field that shows it."""

    def __init__(self, path: str, message: str) -> None:
        self.problem = Problem(path, message)
        super().__init__(str(self.problem))


def read_as(shape: type[T], obj: object) -> T:
    """The fields that a shape names, if they are not read yet; raises UnreadableError."""
    if type(obj) is shape:
        return obj
    try:
        return msgspec.convert(obj, shape)
    except msgspec.ValidationError as error:
        message, _, path = str(error).partition(" - at `$")
        raise UnreadableError(path.strip(".`"), f"{message}.") from None


def read_quantity(value: object, path: str, read: Callable[[object], int | None]) -> int:
    """Raises UnreadableError."""
    found = read(value)
    if found is None:
        raise UnreadableError(path, f"{value!r:.80} is not a quantity of at least 0.")
    return found


def own_text(value: str | None, path: str) -> str:
    """A string that every stored object has; raises UnreadableError."""
    if not value:
        raise UnreadableError(path, "It must be set.")
    return value
