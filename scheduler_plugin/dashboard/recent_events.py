"""The last Events that Moorage's schedulers recorded, of all replicas: each once, bounded."""

from __future__ import annotations

from collections.abc import Iterator
from heapq import nlargest
from typing import NamedTuple

import msgspec

from kube.shapes.events import Event
from kube.shapes.reading import JsonObject, read_as
from scheduler_plugin.dashboard.snapshots import Line

MOST_RECENT = 500
"""How many Events are kept: each takes up to 1,500 bytes, and the same again for filters."""

_TO_SECONDS = len("2026-11-21T12:00:00")


class About(NamedTuple):
    """The object that an Event is about."""

    kind: str
    namespace: str
    name: str


class RecentEvent(NamedTuple):
    """The part of an Event that the page has.

    Attributes:
        at: When it happened last, in RFC 3339, to the second.
    """

    at: str
    type: str
    reason: str
    action: str
    about: About
    note: str

    @property
    def line(self) -> Line:
        kind, namespace, name = self.about
        row = {
            "at": self.at,
            "type": self.type,
            "reason": self.reason,
            "action": self.action,
            "kind": kind,
            "namespace": namespace,
            "name": name,
            "note": self.note,
        }
        words = (self.reason, kind, namespace, name, self.note)
        return Line(msgspec.json.encode(row), " ".join(words).lower(), namespace=namespace)


def recent_event(obj: JsonObject | Event) -> RecentEvent:
    """An Event of events.k8s.io/v1 as the API server keeps it; raises UnreadableError."""
    event = read_as(Event, obj)
    about, moment = event.about, event.last_time
    return RecentEvent(
        at=f"{moment[:_TO_SECONDS]}Z" if moment else "",
        type=event.type or "",
        reason=event.reason or "",
        action=event.action or "",
        about=About(about.kind or "", about.namespace or "", about.name or ""),
        note=event.sentence,
    )


class Recent:
    """The last Events as lines: evictions, owners and refusals."""

    def __init__(self, most: int = MOST_RECENT) -> None:
        self._most = most
        self._found: dict[str, tuple[str, int, Line]] = {}
        self.count = 0
        """How often an Event was added."""

    def add(self, event: RecentEvent, uid: str = "") -> None:
        """Add an Event; it replaces an earlier one with the same UID."""
        line, known = event.line, self._found.get(uid)
        if known is not None and (known[0], known[2]) == (event.at, line):
            return
        self.count += 1
        self._found[uid or f"own {self.count}"] = event.at, self.count, line
        if len(self._found) > 2 * self._most:
            self._found = dict(
                nlargest(self._most, self._found.items(), key=lambda one: one[1][:2])
            )

    def lines(self) -> Iterator[Line]:
        """The lines, the newest first."""
        newest = nlargest(self._most, self._found.values(), key=lambda one: one[:2])
        yield from (line for _, _, line in newest)
