"""What one line of a watch says."""

from dataclasses import dataclass
from typing import Any, TypeAlias

import msgspec

from kube.errors import ApiError, UnavailableError, error_of
from kube.objects import JsonObject, parse_resource_version


class BadFrameError(UnavailableError):
    """Raised when a line of a watch is not a watch event."""


@dataclass(frozen=True, slots=True)
class Observed:
    """The object exists in this version (ADDED, MODIFIED)."""

    object: JsonObject


@dataclass(frozen=True, slots=True)
class Removed:
    """The object was deleted, or no longer matches the selectors (DELETED)."""

    object: JsonObject


@dataclass(frozen=True, slots=True)
class Bookmark:
    """Everything up to this resourceVersion has been sent."""

    resource_version: int


@dataclass(frozen=True, slots=True)
class Failed:
    """The server ends the watch with an error; a GoneError asks for a new list."""

    error: ApiError


Frame: TypeAlias = Observed | Removed | Bookmark | Failed


class _Event(msgspec.Struct):
    type: str
    object: dict[str, Any]


_EVENT = msgspec.json.Decoder(_Event)


def parse_frame(line: bytes) -> Frame:
    try:
        event = _EVENT.decode(line)
        return _frame(event.type, event.object)
    except (AttributeError, KeyError, TypeError, ValueError, RecursionError) as error:
        raise BadFrameError(f"not a watch event: {line[:100]!r}: {error!r}") from error


def _frame(kind: str, obj: JsonObject) -> Frame:
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
