"""How an object is read: as a shape, which names the fields that are read.

An absent field and null mean the same, as in the Kubernetes API. `read_as` reads all fields of a
shape at once: a call for each field would take several times as long. Whatever else an object has
is not looked at. The API server has checked all types before; an object that is odd nevertheless
raises, and a store keeps what it had of it.
"""

from __future__ import annotations

from typing import Annotated, TypeVar

import msgspec

from kube.objects import JsonObject as JsonObject

Set = Annotated[str, msgspec.Meta(min_length=1)]
"""A string that every stored object has."""

T = TypeVar("T")


class UnreadableError(ValueError):
    """Raised where an object cannot be what it says it is, with the field that shows it.

    Attributes:
        path: Of the field, as the Kubernetes API writes it.
        message: One sentence without the path.
    """

    def __init__(self, path: str, message: str) -> None:
        self.path, self.message = path, message
        super().__init__(f"{path}: {message}")


def read_as(shape: type[T], obj: object) -> T:
    """The fields that a shape names, if they are not read yet; raises UnreadableError."""
    if type(obj) is shape:
        return obj
    try:
        return msgspec.convert(obj, shape)
    except msgspec.ValidationError as error:
        message, _, path = str(error).partition(" - at `$")
        raise UnreadableError(path.strip(".`"), f"{message}.") from None


def own_text(value: str | None, path: str) -> str:
    """A string that every stored object has; raises UnreadableError."""
    if not value:
        raise UnreadableError(path, "It must be set.")
    return value
