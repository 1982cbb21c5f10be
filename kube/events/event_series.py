"""Which Events are written: one of each kind, and its repetitions as a series.

Events go to events.k8s.io/v1, where a repetition is a `series` on the first Event: a small patch
instead of another object, which `kubectl describe` shows as "x5 over 3m". The other fields of an
Event are immutable, its note included. So a changed note is a new Event, at most one a minute for
the same kind; in between it counts as a repetition.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Any, Protocol, Self, TypeAlias

from cachetools import TTLCache

from kube.kinds import EVENTS
from kube.objects import JsonObject
from kube.resources import ObjectPath, Resource
from kube.shapes.names import LONGEST_NAME
from kube.shapes.times import micro_time

NEW_SENTENCE_AFTER = timedelta(minutes=1)
WRITE_SERIES_EVERY = timedelta(seconds=10)
# As in client-go: after this time without a repetition the same event starts a new series.
SERIES_ENDS_AFTER = timedelta(minutes=6)
MOST_SERIES = 4096
# Limits of the API (validation of events.k8s.io/v1).
LONGEST_NOTE_BYTES = 1024


class EventType(StrEnum):
    """Whether users should look at it."""

    NORMAL = "Normal"
    WARNING = "Warning"


class NamedObject(Protocol):
    """A view of an object that has its name, namespace and UID."""

    @property
    def name(self) -> str: ...

    @property
    def namespace(self) -> str: ...

    @property
    def uid(self) -> str: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class ObjectReference:
    """The object that an event is about."""

    api_version: str
    kind: str
    name: str
    namespace: str = ""
    uid: str = ""

    @classmethod
    def of(cls, resource: Resource, kind: str, found: NamedObject) -> Self:
        """A reference to an object of this resource."""
        return cls(
            api_version=resource.api_version,
            kind=kind,
            name=found.name,
            namespace=found.namespace,
            uid=found.uid,
        )

    @property
    def json(self) -> dict[str, str]:
        fields = {
            "apiVersion": self.api_version,
            "kind": self.kind,
            "name": self.name,
            "namespace": self.namespace,
            "uid": self.uid,
        }
        return {key: text for key, text in fields.items() if text}


@dataclass(frozen=True, slots=True, kw_only=True)
class Event:
    """Something that happened to an object.

    reason: why, as one CamelCase word for programs. action: what was done, likewise.
    note: the sentence for users.
    """

    regarding: ObjectReference
    type: EventType
    reason: str
    action: str
    note: str
    related: ObjectReference | None = None

    @classmethod
    def warning(cls, regarding: ObjectReference, reason: str, action: str, note: str) -> Self:
        """An event that users should look at."""
        return cls(
            regarding=regarding, type=EventType.WARNING, reason=reason, action=action, note=note
        )

    @classmethod
    def normal(cls, regarding: ObjectReference, reason: str, action: str, note: str) -> Self:
        """An event that needs no attention."""
        return cls(
            regarding=regarding, type=EventType.NORMAL, reason=reason, action=action, note=note
        )


@dataclass(frozen=True, slots=True)
class CreateEvent:
    """Write a new Event."""

    path: ObjectPath
    body: JsonObject


@dataclass(frozen=True, slots=True)
class PatchSeries:
    """Write the number of repetitions."""

    path: ObjectPath
    patch: JsonObject


Write: TypeAlias = CreateEvent | PatchSeries

_Kind: TypeAlias = tuple[ObjectReference, EventType, str, str]


@dataclass(slots=True, kw_only=True)
class _Series:
    path: ObjectPath
    note: str
    began_at: datetime
    last_at: datetime
    written_at: datetime
    count: int = 1
    written_count: int = 1

    def goes_on(self, event: Event, now: datetime) -> bool:
        return self.note == event.note or now - self.began_at < NEW_SENTENCE_AFTER


class EventSeries:
    """The active series of one reporting process."""

    def __init__(self, controller: str, instance: str) -> None:
        self._controller, self._instance = controller, instance
        self._now = 0.0
        # Beyond MOST_SERIES the series without a repetition for the longest time is dropped.
        self._series: TTLCache[_Kind, _Series] = TTLCache(
            MOST_SERIES, SERIES_ENDS_AFTER.total_seconds(), lambda: self._now
        )

    def record(self, event: Event, *, now: datetime, unique: str) -> CreateEvent | None:
        """Count an event. Returns the new Event for the first of its kind; see `due` for the rest.

        `unique` becomes part of the new Event's name.
        """
        self._now = now.timestamp()
        kind = (event.regarding, event.type, event.reason, event.action)
        series = self._series.get(kind)
        if series and series.goes_on(event, now):
            series.count, series.last_at = series.count + 1, now
            self._series[kind] = series  # Renews its time to live.
            return None
        path = _path(event.regarding, unique)
        self._series[kind] = _Series(
            path=path, note=event.note, began_at=now, last_at=now, written_at=now
        )
        return CreateEvent(path, self._body(event, path, now))

    def due(self, *, now: datetime) -> Iterator[PatchSeries]:
        """Yield patches for series with repetitions that are not written yet."""
        self._now = now.timestamp()
        for series in list(self._series.values()):
            since = now - series.written_at
            if series.count > series.written_count and since >= WRITE_SERIES_EVERY:
                series.written_count, series.written_at = series.count, now
                at = micro_time(series.last_at)
                patch = {"series": {"count": series.count, "lastObservedTime": at}}
                yield PatchSeries(series.path, patch)

    def forget(self, path: ObjectPath) -> None:
        """End the series of a deleted Event; the next repetition writes a new one."""
        for kind, series in list(self._series.items()):
            if series.path == path:
                del self._series[kind]

    def _body(self, event: Event, path: ObjectPath, now: datetime) -> JsonObject:
        body: dict[str, Any] = {
            "apiVersion": EVENTS.api_version,
            "kind": "Event",
            "metadata": {"name": path.name, "namespace": path.namespace},
            "eventTime": micro_time(now),
            "reportingController": self._controller,
            "reportingInstance": self._instance,
            "type": event.type.value,
            "reason": event.reason,
            "action": event.action,
            "note": _shortened(event.note),
            "regarding": event.regarding.json,
        }
        return body | ({"related": event.related.json} if event.related else {})


def _path(regarding: ObjectReference, unique: str) -> ObjectPath:
    """The path of a new Event; those of cluster-scoped objects are in `default`, as required."""
    stem = regarding.name[: LONGEST_NAME - len(unique) - 1]
    return EVENTS.at(f"{stem}.{unique}", regarding.namespace or "default")


def _shortened(note: str) -> str:
    data = note.encode()
    if len(data) <= LONGEST_NOTE_BYTES:
        return note
    return data[: LONGEST_NOTE_BYTES - 3].decode(errors="ignore") + "..."
