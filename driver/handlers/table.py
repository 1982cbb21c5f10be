"""The table of a node's external discovery handlers: which are registered, and for how long.

    registrations, conversations ──HandlerTable──► the handlers, each in its state

Handlers without privileges have a limit of their own, so that they never take the room of others.
The next run of the driver restores the table. A handler is on hold after too many runs ended within
a minute of knowing it: it is Offline, and not called before it registers again. Otherwise it could
crash the driver at each start.
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
"""How long the driver must have run with a handler until the handler counts as harmless."""


@dataclass(frozen=True, slots=True)
class Room:
    """Limits of registered handlers.

    Attributes:
        handlers: Handlers of one node: a handler that registers with new addresses without end
            must not fill the memory.
        of_a_name: Handlers of one name among them.
        runs: A handler is on hold after so many runs of the driver in a row that ended within a
            minute of knowing it. Handlers that watch for agents, as all of ours, register again.
    """

    handlers: int
    of_a_name: int
    runs: int


@dataclass(frozen=True, slots=True)
class Rooms:
    """The limits of trusted handlers, and of handlers without privileges."""

    trusted: Room = Room(256, 32, runs=3)
    unprivileged: Room = Room(4, 2, runs=1)

    def of(self, registration: Registration) -> Room:
        return self.unprivileged if registration.unprivileged else self.trusted


class TableFullError(Exception):
    """Raised when the table is full, and all handlers are in use."""


@dataclass(slots=True)
class HandlerTable:
    """The handlers of one node.

    Attributes:
        removed: Names of removed handlers. No handler reports their devices until one of that name
            registers.
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
        """The handlers of this name, sorted by address."""
        return tuple(handler for handler in self if handler.endpoint.name == name)

    def remembered(self) -> tuple[Remembered, ...]:
        """The records to store, the oldest first."""
        return tuple(Remembered(h.registration, h.runs) for h in self._handlers.values())

    def recall(
        self, remembered: Iterable[Remembered], removed: Iterable[str], now: datetime
    ) -> None:
        """Restore handlers of an earlier run of the driver, as far as the limits allow."""
        self.removed.update(removed)
        for entry in remembered:
            if self._peers(entry.registration) is None:
                most = self.rooms.of(entry.registration).runs
                self._handlers[entry.registration.endpoint] = _recalled(entry, most, now)

    def register(self, registration: Registration, now: datetime) -> None:
        """Register a handler, for the first time or again.

        Raises:
            TableFullError: If the table is full.
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
        peers = self._peers(registration)
        if peers is None:
            return
        for handler in peers:
            if handler.may_go:
                del self._handlers[handler.endpoint]
                return
        whose = " without privileges" if registration.unprivileged else ""
        raise TableFullError(
            f"{len(peers)} discovery handlers{whose} are registered, and all in use; there is no"
            f" room for another {shown(registration.endpoint.name)}."
        )

    def _peers(self, registration: Registration) -> list[RegisteredHandler] | None:
        """The handlers one of which must be removed first; None if there is room."""
        room, unprivileged = self.rooms.of(registration), registration.unprivileged
        alike = [h for h in self._handlers.values() if h.registration.unprivileged is unprivileged]
        named = [h for h in alike if h.endpoint.name == registration.endpoint.name]
        if len(named) >= room.of_a_name:
            return named
        return alike if len(alike) >= room.handlers else None

    def reached(self, endpoint: Endpoint, conversation: Conversation, now: datetime) -> None:
        """Record that a conversation is open."""
        if handler := self._handlers.get(endpoint):
            conversations = handler.conversations | {conversation}
            reached = replace(handler, conversations=conversations).after(Event.REACHED, now)
            self._handlers[endpoint] = reached

    def lost(self, endpoint: Endpoint, conversation: Conversation, now: datetime) -> None:
        """Record that a conversation could not start, or ended with an error."""
        if handler := self._without(endpoint, conversation):
            others = bool(handler.conversations)
            self._handlers[endpoint] = handler if others else handler.after(Event.LOST, now)

    def ended(self, endpoint: Endpoint, conversation: Conversation) -> None:
        """Record that the driver ended a conversation."""
        if handler := self._without(endpoint, conversation):
            self._handlers[endpoint] = handler

    def _without(self, endpoint: Endpoint, conversation: Conversation) -> RegisteredHandler | None:
        handler = self._handlers.get(endpoint)
        if handler is None:
            return None
        return replace(handler, conversations=handler.conversations - {conversation})

    def use(self, names: Collection[str], now: datetime) -> None:
        """Set the names that Configurations give; handlers of other names are unused.

        The devices of unused handlers are gone with their Configurations, so no caller waits for
        these handlers any more.
        """
        for endpoint, handler in self._handlers.items():
            if endpoint.name not in names:
                idle = replace(handler, conversations=frozenset(), recalled=False)
                self._handlers[endpoint] = idle.after(Event.UNUSED, now)
        self.removed &= set(names)

    def expire(self, now: datetime) -> tuple[RegisteredHandler, ...]:
        """Remove the handlers that have been Offline for `REMOVED_AFTER`, and return them."""
        due = [h for h in self._handlers.values() if h.since and now >= h.since + REMOVED_AFTER]
        for handler in due:
            del self._handlers[handler.endpoint]
            self.removed.add(handler.endpoint.name)
        return tuple(due)

    def prove(self, now: datetime) -> None:
        """Reset the runs of handlers with which the driver has run for `PROVEN_AFTER`."""
        for endpoint, handler in self._handlers.items():
            if handler.is_proving and now >= handler.entered + PROVEN_AFTER:
                self._handlers[endpoint] = replace(handler, runs=0)

    def next_due(self) -> datetime | None:
        """When to call `expire` and `prove` next; None if no handler is due."""
        expiries = (h.since + REMOVED_AFTER for h in self._handlers.values() if h.since)
        proofs = (h.entered + PROVEN_AFTER for h in self._handlers.values() if h.is_proving)
        return min((*expiries, *proofs), default=None)


def _recalled(entry: Remembered, most_runs: int, now: datetime) -> RegisteredHandler:
    """A stored handler, in its state at the start of this run."""
    handler = RegisteredHandler(entry.registration, now, entry.runs + 1, recalled=True)
    if entry.runs < most_runs:
        return handler
    return replace(handler, runs=entry.runs, on_hold=True).after(Event.LOST, now)
