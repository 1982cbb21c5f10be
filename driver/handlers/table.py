"""Discovery handlers in processes of their own: which are registered, and for how long.

    registrations, conversations ──HandlerTable──► the handlers, each in its state

Handlers without privileges have room of their own, so that they never take that of others. The
next run of the driver recalls the table. What too many runs did not survive a minute of is on hold,
Offline and not asked before it registers again: it would be the end of each start.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta

from driver.discovery.details import shown
from driver.handlers.registrations import (
    Conversation,
    Endpoint,
    Event,
    RegisteredHandler,
    Registration,
    Remembered,
)

REMOVED_AFTER = timedelta(minutes=5)
"""How long a handler may be Offline and stay registered."""

PROVEN_AFTER = timedelta(minutes=1)
"""How long the driver must have lived with a handler for the next run to think nothing of it."""


@dataclass(frozen=True, slots=True)
class Room:
    """How many handlers may be registered.

    Attributes:
        handlers: Of one node: one that registers from ever new places must not fill the memory.
        of_a_name: Of those, that bear one name.
        runs: Of the driver, in a row, that ended within a minute of knowing a handler, until that
            is on hold. It registers again if it looks for agents that start; ours all do.
    """

    handlers: int
    of_a_name: int
    runs: int


@dataclass(frozen=True, slots=True)
class Rooms:
    """Each for itself: handlers of the node, and handlers without privileges there."""

    trusted: Room = Room(256, 32, runs=3)
    unprivileged: Room = Room(4, 2, runs=1)

    def of(self, registration: Registration) -> Room:
        return self.unprivileged if registration.unprivileged else self.trusted


class TableFullError(Exception):
    """Raised when there are more handlers than anybody needs, and all are in use."""


@dataclass(slots=True)
class HandlerTable:
    """The handlers of one node.

    Attributes:
        removed: Names of which a handler was removed, so that nobody reports its devices now;
            until a handler of that name registers, which may.
    """

    rooms: Rooms = Rooms()
    removed: set[str] = field(default_factory=set)
    _handlers: dict[Endpoint, RegisteredHandler] = field(default_factory=dict)

    def __iter__(self) -> Iterator[RegisteredHandler]:
        return iter(self._handlers[endpoint] for endpoint in sorted(self._handlers))

    def __getitem__(self, endpoint: Endpoint) -> RegisteredHandler:
        return self._handlers[endpoint]

    def __contains__(self, endpoint: Endpoint) -> bool:
        return endpoint in self._handlers

    def named(self, name: str) -> tuple[RegisteredHandler, ...]:
        """The handlers of this name, in an order that does not change."""
        return tuple(handler for handler in self if handler.endpoint.name == name)

    def remembered(self) -> tuple[Remembered, ...]:
        """What to write down, the oldest first."""
        return tuple(Remembered(h.registration, h.runs) for h in self._handlers.values())

    def recall(
        self, remembered: Iterable[Remembered], removed: Iterable[str], now: datetime
    ) -> None:
        """Enter what an earlier run of the driver knew, as far as there is room."""
        self.removed.update(removed)
        for entry in remembered:
            if self._crowd(entry.registration) is None:
                most = self.rooms.of(entry.registration).runs
                self._handlers[entry.registration.endpoint] = _recalled(entry, most, now)

    def register(self, registration: Registration, now: datetime) -> None:
        """A handler registers, for the first time or again.

        Raises:
            TableFullError: If there is no room for it.
        """
        known = self._handlers.get(registration.endpoint)
        if known is None:
            self._make_room(registration)
            known = RegisteredHandler(registration, now)
        entered = now if known.on_hold else known.entered
        known = replace(known, registration=registration, entered=entered, on_hold=False)
        handler = known.after(Event.REGISTERED, now)
        self._handlers[registration.endpoint] = handler
        self.removed.discard(registration.endpoint.name)

    def _make_room(self, registration: Registration) -> None:
        crowd = self._crowd(registration)
        if crowd is None:
            return
        for handler in crowd:
            if handler.may_go:
                del self._handlers[handler.endpoint]
                return
        whose = " without privileges" if registration.unprivileged else ""
        raise TableFullError(
            f"{len(crowd)} discovery handlers{whose} are registered, and all in use; there is no"
            f" room for another {shown(registration.endpoint.name)}."
        )

    def _crowd(self, registration: Registration) -> list[RegisteredHandler] | None:
        """Those one of which must go for another to have room; None if there is room."""
        room, unprivileged = self.rooms.of(registration), registration.unprivileged
        alike = [h for h in self._handlers.values() if h.registration.unprivileged is unprivileged]
        named = [h for h in alike if h.endpoint.name == registration.endpoint.name]
        if len(named) >= room.of_a_name:
            return named
        return alike if len(alike) >= room.handlers else None

    def reached(self, endpoint: Endpoint, conversation: Conversation, now: datetime) -> None:
        """A conversation is under way."""
        if handler := self._handlers.get(endpoint):
            conversations = handler.conversations | {conversation}
            reached = replace(handler, conversations=conversations).after(Event.REACHED, now)
            self._handlers[endpoint] = reached

    def lost(self, endpoint: Endpoint, conversation: Conversation, now: datetime) -> None:
        """A conversation could not begin, or broke off."""
        if handler := self._without(endpoint, conversation):
            others = bool(handler.conversations)
            self._handlers[endpoint] = handler if others else handler.after(Event.LOST, now)

    def ended(self, endpoint: Endpoint, conversation: Conversation) -> None:
        """We ended a conversation."""
        if handler := self._without(endpoint, conversation):
            self._handlers[endpoint] = handler

    def _without(self, endpoint: Endpoint, conversation: Conversation) -> RegisteredHandler | None:
        handler = self._handlers.get(endpoint)
        if handler is None:
            return None
        return replace(handler, conversations=handler.conversations - {conversation})

    def use(self, names: Collection[str], now: datetime) -> None:
        """These are the names that Configurations give; nobody asks the others any more.

        What those once reported is gone with its Configurations, so nobody waits for them either.
        """
        for endpoint, handler in self._handlers.items():
            if endpoint.name not in names:
                idle = replace(handler, conversations=frozenset(), recalled=False)
                self._handlers[endpoint] = idle.after(Event.UNUSED, now)
        self.removed &= set(names)

    def expire(self, now: datetime) -> tuple[RegisteredHandler, ...]:
        """Remove those that have been Offline too long, and return them."""
        due = [h for h in self._handlers.values() if h.since and now >= h.since + REMOVED_AFTER]
        for handler in due:
            del self._handlers[handler.endpoint]
            self.removed.add(handler.endpoint.name)
        return tuple(due)

    def prove(self, now: datetime) -> None:
        """Those with which the driver has lived for a minute did it no harm."""
        for endpoint, handler in self._handlers.items():
            if handler.is_proving and now >= handler.entered + PROVEN_AFTER:
                self._handlers[endpoint] = replace(handler, runs=0)

    def next_due(self) -> datetime | None:
        """When a handler is to be removed or has proven itself, if nothing happens before."""
        expiries = (h.since + REMOVED_AFTER for h in self._handlers.values() if h.since)
        proofs = (h.entered + PROVEN_AFTER for h in self._handlers.values() if h.is_proving)
        return min((*expiries, *proofs), default=None)


def _recalled(entry: Remembered, most_runs: int, now: datetime) -> RegisteredHandler:
    """A handler that is written down, as this run begins with it."""
    handler = RegisteredHandler(entry.registration, now, entry.runs + 1, recalled=True)
    if entry.runs < most_runs:
        return handler
    return replace(handler, runs=entry.runs, on_hold=True).after(Event.LOST, now)
