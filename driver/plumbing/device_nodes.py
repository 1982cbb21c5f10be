"""What is at a path of the host that should be a device node."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum, auto


class FileKind(Enum):
    """The kind of file at a path."""

    NODE = auto()
    """A device node."""
    OTHER = auto()
    """A file, a folder or a socket."""
    MISSING = auto()
    """No file, at this moment."""
    UNKNOWN = auto()
    """Unknown: this process does not see that part of the host."""


@dataclass(frozen=True, slots=True)
class PathTarget:
    """The result of a look at one path.

    Attributes:
        target: The target of the path through all links; None if that is unknown.
        kind: What is at the target.
    """

    target: str | None
    kind: FileKind
