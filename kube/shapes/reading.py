"""Reads an object as a shape, which names the fields that are read.

An absent field and null mean the same, as in the Kubernetes API. `read_as` reads all fields of a
shape at once: a call for each field would take several times as long. Other fields are ignored. The
API server has validated the types before; a malformed object raises, and a store keeps its value
before.
"""

from __future__ import annotations

from typing import Annotated, TypeVar

import msgspec

from kube.objects import JsonObject as JsonObject

Set = Annotated[str, msgspec.Meta(min_length=1)]
"""A string that must not be empty."""

T = TypeVar("T")


class UnreadableError(ValueError):
    """Raised when an object does not fit the shape of its kind; names the field.

    Attributes:
        path: The field's path, as the Kubernetes API writes it.
        message: One sentence without the path.
    """

    def __init__(self, path: str, message: str) -> None:
        self.path, self.message = path, message
        super().__init__(f"{path}: {message}")


def read_as(shape: type[T], obj: object) -> T:
    """The object as a shape; one that already is this shape is returned.

    Raises:
        UnreadableError: A field is missing or has another type.
    """
    if type(obj) is shape:
        return obj
    try:
        return msgspec.convert(obj, shape)
    except msgspec.ValidationError as error:
        message, _, path = str(error).partition(" - at `$")
        raise UnreadableError(path.strip(".`"), f"{message}.") from None


def own_text(value: str | None, path: str) -> str:
    """The value, which must not be empty; raises UnreadableError."""
    if not value:
        raise UnreadableError(path, "It must be set.")
    return value
