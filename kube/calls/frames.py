"""Lines of a watch, parsed into frames."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Generic, TypeAlias, TypeVar

import msgspec

from kube.calls.errors import ApiError, UnavailableError, error_of
from kube.objects import StoredObject, parse_resource_version

S = TypeVar("S")


# Stored objects are far smaller; a longer line is not a watch event.
LONGEST_LINE_BYTES = 64 * 2**20


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
    """The parser of a watch whose objects are read as a shape; None for JSON.

    Bookmarks, errors and objects that do not fit the shape are read as JSON: the projection then
    reports what is wrong with an object.
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


class Lines:
    """Splits bytes into lines, and keeps the unfinished last line.

    aiohttp's own `readline` refuses lines beyond its buffer. A watch event may be larger: etcd
    stores up to 1.5 MiB, and JSON takes more.
    """

    __slots__ = ("_pieces", "_size")

    def __init__(self) -> None:
        self._pieces: list[bytes] = []
        self._size = 0

    def feed(self, chunk: bytes) -> list[bytes]:
        """Return the lines that `chunk` completes, without their newlines and without blanks."""
        *complete, rest = chunk.split(b"\n")
        if complete:
            complete[0] = b"".join([*self._pieces, complete[0]])
            self._pieces, self._size = [], 0
        self._keep(rest)
        return [line for line in complete if line.strip()]

    def _keep(self, rest: bytes) -> None:
        self._pieces.append(rest)
        self._size += len(rest)
        if self._size > LONGEST_LINE_BYTES:
            raise UnavailableError(f"the watch sent a line of more than {LONGEST_LINE_BYTES} bytes")
