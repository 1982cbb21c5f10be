"""What all viewers see until the world changes: rows, each once as the JSON that is sent."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from cachetools import LRUCache

from scheduler_plugin.dashboard.parts import Part

MOST_FILTERS = 32
"""How many filtered lists are remembered until the next snapshot."""


@dataclass(frozen=True, slots=True)
class Line:
    """One row.

    Attributes:
        body: A JSON object, as those see it who may list the kind that it shows.
        beside: What others see beside that, likewise; b"" for nothing.
        text: What a filter looks at, in small letters.
        text_beside: The same, of what is beside.
    """

    body: bytes
    text: str
    beside: bytes = b""
    text_beside: str = ""
    namespace: str = ""

    def json(self, *, whole: bool) -> bytes:
        """What a viewer gets: all of it, or only what is not beside."""
        if not (whole and self.beside):
            return self.body
        return b"%s,%s" % (self.body[:-1], self.beside[1:])

    def has(self, words: Sequence[str], *, whole: bool) -> bool:
        """Whether each of the words occurs in what the viewer sees."""
        return all(word in self.text or (whole and word in self.text_beside) for word in words)


@dataclass(frozen=True, slots=True)
class Asked:
    """Which rows of a list a viewer wants, and may have.

    Attributes:
        words: In small letters; each must occur.
        namespace: "" for all.
        whole: Whether he may see what the rows say beside.
    """

    part: Part
    words: tuple[str, ...] = ()
    namespace: str = ""
    whole: bool = False


@dataclass(frozen=True, slots=True)
class Snapshot:
    """The rows of one moment; its number grows."""

    number: int
    lines: Mapping[Part, Sequence[Line]]
    _filtered: LRUCache[Asked, Sequence[Line]] = field(
        default_factory=lambda: LRUCache(MOST_FILTERS), repr=False, compare=False
    )

    def window(self, asked: Asked, offset: int, limit: int) -> list[bytes]:
        """At most `limit` rows; none where the list is shorter."""
        chosen = self._found(asked)[offset : offset + limit]
        return [line.json(whole=asked.whole) for line in chosen]

    def total(self, asked: Asked) -> int:
        return len(self._found(asked))

    def _found(self, asked: Asked) -> Sequence[Line]:
        lines = self.lines.get(asked.part, ())
        if not (asked.words or asked.namespace):
            return lines
        if asked not in self._filtered:
            self._filtered[asked] = [
                line
                for line in lines
                if line.namespace in (asked.namespace or line.namespace, "")
                and line.has(asked.words, whole=asked.whole)
            ]
        return self._filtered[asked]
