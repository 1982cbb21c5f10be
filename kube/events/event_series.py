"""What is written of the events that happen: each kind once, its repetitions as a series.

Events go to events.k8s.io/v1, where a repetition is a `series` on the first Event: one small
patch instead of one more object, which `kubectl describe` shows as "x5 over 3m". The rest of an
Event never changes there, its sentence included. So a changed sentence is a new Event, but at
most one a minute for the same thing; in between it counts as a repetition.
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
# client-go's figure: after so long a silence the same thing is a new story.
SERIES_ENDS_AFTER = timedelta(minutes=6)
MOST_SERIES = 4096
# Limits of the API (validation of events.k8s.io/v1).
LONGEST_NOTE_BYTES = 1024


class EventType(StrEnum):
    """Whether people should look at it."""

    NORMAL = "Normal"
    WARNING = "Warning"


class NamedObject(Protocol):
    """What is known of an object in a namespace says which one it is."""

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
        """The object of this resource that something is known of."""
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

    reason: why, one CamelCase word, for machines. action: what was done about it, likewise.
    note: the sentence for people.
    """

    regarding: ObjectReference
    type: EventType
    reason: str
    action: str
    note: str
    related: ObjectReference | None = None

    @classmethod
    def warning(cls, regarding: ObjectReference, reason: str, action: str, note: str) -> Self:
        """What people should look at."""
        return cls(
            regarding=regarding, type=EventType.WARNING, reason=reason, action=action, note=note
        )

    @classmethod
    def normal(cls, regarding: ObjectReference, reason: str, action: str, note: str) -> Self:
        """What happened as it should."""
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
    """Write how often it happened by now."""

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
    """The series that are going on, of one reporting process."""

    def __init__(self, controller: str, instance: str) -> None:
        self._controller, self._instance = controller, instance
        self._now = 0.0
        # Of too many, that which has been silent for the longest goes.
        self._series: TTLCache[_Kind, _Series] = TTLCache(
            MOST_SERIES, SERIES_ENDS_AFTER.total_seconds(), lambda: self._now
        )

    def record(self, event: Event, *, now: datetime, unique: str) -> CreateEvent | None:
        """Count an event; the first of its kind is to be written, repetitions are `due` later.

        `unique` becomes part of the new Event's name.
        """
        self._now = now.timestamp()
        kind = (event.regarding, event.type, event.reason, event.action)
        series = self._series.get(kind)
        if series and series.goes_on(event, now):
            series.count, series.last_at = series.count + 1, now
            self._series[kind] = series  # Its silence begins anew.
            return None
        path = _path(event.regarding, unique)
        self._series[kind] = _Series(
            path=path, note=event.note, began_at=now, last_at=now, written_at=now
        )
        return CreateEvent(path, self._body(event, path, now))

    def due(self, *, now: datetime) -> Iterator[PatchSeries]:
        """Yield the patches for what was repeated since it was last written."""
        self._now = now.timestamp()
        for series in list(self._series.values()):
            since = now - series.written_at
            if series.count > series.written_count and since >= WRITE_SERIES_EVERY:
                series.written_count, series.written_at = series.count, now
                at = micro_time(series.last_at)
                patch = {"series": {"count": series.count, "lastObservedTime": at}}
                yield PatchSeries(series.path, patch)

    def forget(self, path: ObjectPath) -> None:
        """End the series of an Event that is gone; the next repetition writes a new one."""
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
    """Events about cluster-scoped objects live in `default`, as the API demands."""
    stem = regarding.name[: LONGEST_NAME - len(unique) - 1]
    return EVENTS.at(f"{stem}.{unique}", regarding.namespace or "default")


def _shortened(note: str) -> str:
    data = note.encode()
    if len(data) <= LONGEST_NOTE_BYTES:
        return note
    return data[: LONGEST_NOTE_BYTES - 3].decode(errors="ignore") + "..."
