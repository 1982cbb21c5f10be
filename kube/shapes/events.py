"""Shapes of an Event, in either of its API groups."""

# No annotations from __future__: msgspec would have to evaluate each text in every process.

import msgspec

from kube.shapes.metadata import NO_METADATA, Metadata


class Regarding(msgspec.Struct, frozen=True):
    """The object that an Event is about."""

    kind: str | None = None
    namespace: str | None = None
    name: str | None = None
    uid: str | None = None


class Series(msgspec.Struct, frozen=True, rename="camel"):
    """`series` of an Event that happened several times."""

    last_observed_time: str | None = None


class Event(msgspec.Struct, frozen=True, rename="camel"):
    """An Event of `events.k8s.io`, or of the core group, which names some fields otherwise."""

    metadata: Metadata | None = None
    type: str | None = None
    reason: str | None = None
    action: str | None = None
    note: str | None = None
    message: str | None = None
    regarding: Regarding | None = None
    involved_object: Regarding | None = None
    reporting_controller: str | None = None
    reporting_instance: str | None = None
    event_time: str | None = None
    deprecated_last_timestamp: str | None = None
    last_timestamp: str | None = None
    series: Series | None = None

    @property
    def about(self) -> Regarding:
        """The object that the Event is about."""
        return self.regarding or self.involved_object or NOTHING

    @property
    def sentence(self) -> str:
        return self.note or self.message or ""

    @property
    def last_time(self) -> str:
        """The time of the last occurrence, as the API writes it; "" if there is none."""
        series = self.series.last_observed_time if self.series is not None else None
        old = self.deprecated_last_timestamp or self.last_timestamp
        return series or self.event_time or old or ""

    @property
    def created(self) -> str:
        return (self.metadata or NO_METADATA).creation_timestamp or ""


NOTHING = Regarding()
