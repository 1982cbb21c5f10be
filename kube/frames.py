"""What one line of a watch says."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Generic, TypeAlias, TypeVar

import msgspec

from kube.errors import ApiError, UnavailableError, error_of
from kube.objects import StoredObject, parse_resource_version

S = TypeVar("S")


class BadFrameError(UnavailableError):
    """Raised when a line of a watch is not a watch event."""


@dataclass(frozen=True, slots=True)
class Observed:
    """The object exists in this version (ADDED, MODIFIED)."""

    object: StoredObject


@dataclass(frozen=True, slots=True)
class Removed:
    """The object was deleted, or no longer matches the selectors (DELETED)."""

    object: StoredObject


@dataclass(frozen=True, slots=True)
class Bookmark:
    """Everything up to this resourceVersion has been sent."""

    resource_version: int


@dataclass(frozen=True, slots=True)
class Failed:
    """The server ends the watch with an error; a GoneError asks for a new list."""

    error: ApiError


Frame: TypeAlias = Observed | Removed | Bookmark | Failed


class _Event(msgspec.Struct, Generic[S]):
    type: str
    object: S


_EVENT = msgspec.json.Decoder(_Event[dict[str, Any]])


def parse_frame(line: bytes) -> Frame:
    try:
        event = _EVENT.decode(line)
        return _frame(event.type, event.object)
    except (AttributeError, KeyError, TypeError, ValueError, RecursionError) as error:
        raise BadFrameError(f"not a watch event: {line[:100]!r}: {error!r}") from error


def frames_of(shape: type[Any] | None) -> Callable[[bytes], Frame]:
    """What parses the lines of a watch whose objects are read as a shape; None for JSON.

    What has another shape (a bookmark, an error, an object that cannot be what it says it is) is
    read as JSON: whoever takes it says what is wrong.
    """
    if shape is None:
        return parse_frame
    decode = msgspec.json.Decoder(_Event[shape]).decode  # type: ignore[valid-type]

    def parse(line: bytes) -> Frame:
        try:
            event = decode(line)
        except (ValueError, RecursionError):
            return parse_frame(line)
        return _frame(event.type, event.object) if event.type in _VERSIONS else parse_frame(line)

    return parse


_VERSIONS = frozenset({"ADDED", "MODIFIED", "DELETED"})


def _frame(kind: str, obj: Any) -> Frame:
    match kind:
        case "ADDED" | "MODIFIED":
            return Observed(obj)
        case "DELETED":
            return Removed(obj)
        case "BOOKMARK":
            return Bookmark(parse_resource_version(obj["metadata"]["resourceVersion"]))
        case "ERROR":
            return Failed(error_of(int(obj.get("code") or 500), obj))
        case _:
            raise ValueError(f"unknown type {kind!r}")
