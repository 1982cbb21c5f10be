"""What is seen at a path of the host where a device node is to be."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum, auto


class Seen(Enum):
    """What is at a path."""

    NODE = auto()
    """A device node."""
    OTHER = auto()
    """A file, a folder or a socket."""
    MISSING = auto()
    """Nothing, at this moment."""
    UNKNOWN = auto()
    """This process does not see that part of the host."""


@dataclass(frozen=True, slots=True)
class Look:
    """One path, looked up.

    Attributes:
        leads: Where it leads through all links; None where that is not known.
    """

    leads: str | None
    seen: Seen
