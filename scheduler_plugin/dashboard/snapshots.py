"""The rows for all viewers until the world changes, each once as the JSON that is sent."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from cachetools import LRUCache

from scheduler_plugin.dashboard.parts import Part

MOST_FILTERS = 32
"""How many filtered lists are cached until the next snapshot."""


@dataclass(frozen=True, slots=True)
class Line:
    """One row.

    Attributes:
        body: A JSON object for viewers who may list the kind of the row.
        beside: A JSON object for viewers who may list the second kind, too; b"" for none.
        text: The lower-case text that a filter searches.
        text_beside: The same text of `beside`.
    """

    body: bytes
    text: str
    beside: bytes = b""
    text_beside: str = ""
    namespace: str = ""

    def json(self, *, whole: bool) -> bytes:
        """The JSON for a viewer: with `beside` if `whole`."""
        if not (whole and self.beside):
            return self.body
        return b"%s,%s" % (self.body[:-1], self.beside[1:])

    def has(self, words: Sequence[str], *, whole: bool) -> bool:
        """Whether each word occurs in what the viewer sees."""
        return all(word in self.text or (whole and word in self.text_beside) for word in words)


@dataclass(frozen=True, slots=True)
class RowQuery:
    """The rows of a list that a viewer asks for and may see.

    Attributes:
        words: Lower-case words; each must occur.
        namespace: The namespace; "" for all.
        whole: Whether the viewer may see `Line.beside`.
    """

    part: Part
    words: tuple[str, ...] = ()
    namespace: str = ""
    whole: bool = False


@dataclass(frozen=True, slots=True)
class Snapshot:
    """The rows at one moment; later snapshots have higher numbers."""

    number: int
    lines: Mapping[Part, Sequence[Line]]
    _filtered: LRUCache[RowQuery, Sequence[Line]] = field(
        default_factory=lambda: LRUCache(MOST_FILTERS), repr=False, compare=False
    )

    def window(self, query: RowQuery, offset: int, limit: int) -> list[bytes]:
        """At most `limit` rows from `offset` on; none if the list is shorter."""
        chosen = self._found(query)[offset : offset + limit]
        return [line.json(whole=query.whole) for line in chosen]

    def total(self, query: RowQuery) -> int:
        return len(self._found(query))

    def _found(self, query: RowQuery) -> Sequence[Line]:
        lines = self.lines.get(query.part, ())
        if not (query.words or query.namespace):
            return lines
        if query not in self._filtered:
            self._filtered[query] = [
                line
                for line in lines
                if line.namespace in (query.namespace or line.namespace, "")
                and line.has(query.words, whole=query.whole)
            ]
        return self._filtered[query]
