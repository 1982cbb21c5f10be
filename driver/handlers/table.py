"""Discovery handlers in processes of their own: who is registered, and in which state.

                 reached, for some Configuration
    WAITING ───────────────────────────────────────► ACTIVE
     ▲  ▲                                             │  │
     │  └──────── its last Configuration goes ────────┘  │ not reached, or lost
     │                                                   ▼
     └───────────────── registers again ────────────── OFFLINE ──── five minutes ───► removed

`TRANSITIONS` says the same for each state and event. An Offline handler stays Offline when its last
Configuration goes: else it would never be removed. It is Active again as soon as it is reached.

A handler has a conversation for each Configuration that names it, and is lost with the last one
that was under way.

Handlers without privileges have room of their own, so that they never take that of others. The
next run of the driver recalls the table. What too many runs did not survive a minute of is on hold,
Offline and not asked before it registers again: it would be the end of each start.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from enum import Enum, StrEnum, auto
from posixpath import dirname, normpath

from driver.discovery.details import shown

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


Conversation = int | str
"""What tells the conversations with one handler apart."""


class HandlerState(StrEnum):
    """What a handler is doing for this node, in the words of Akri."""

    WAITING = "Waiting"
    ACTIVE = "Active"
    OFFLINE = "Offline"


class Event(Enum):
    """What can happen to a handler."""

    REGISTERED = auto()
    REACHED = auto()
    LOST = auto()
    UNUSED = auto()


_WAITING, _ACTIVE, _OFFLINE = HandlerState

TRANSITIONS: Mapping[tuple[HandlerState, Event], HandlerState] = {
    (_WAITING, Event.REGISTERED): _WAITING,
    (_WAITING, Event.REACHED): _ACTIVE,
    (_WAITING, Event.LOST): _OFFLINE,
    (_WAITING, Event.UNUSED): _WAITING,
    (_ACTIVE, Event.REGISTERED): _ACTIVE,
    (_ACTIVE, Event.REACHED): _ACTIVE,
    (_ACTIVE, Event.LOST): _OFFLINE,
    (_ACTIVE, Event.UNUSED): _WAITING,
    (_OFFLINE, Event.REGISTERED): _WAITING,
    (_OFFLINE, Event.REACHED): _ACTIVE,
    (_OFFLINE, Event.LOST): _OFFLINE,
    (_OFFLINE, Event.UNUSED): _OFFLINE,
}


class TableFullError(Exception):
    """Raised when there are more handlers than anybody needs, and all are in use."""


@dataclass(frozen=True, slots=True, order=True)
class Endpoint:
    """Where a handler of some name listens; no two handlers share one.

    Attributes:
        name: What Configurations call the handler.
        address: The path of a UNIX socket, or `<host>:<port>`.
    """

    name: str
    address: str


@dataclass(frozen=True, slots=True)
class Registration:
    """What a handler says of itself.

    Attributes:
        network: Whether it listens on the network, and not at a UNIX socket.
        shared: Whether several nodes may see one and the same device of it.
        tls: Whether it and the driver show each other certificates; on the network only.
        unprivileged: Whether who listens there may have no privileges on the node.
    """

    endpoint: Endpoint
    network: bool
    shared: bool
    tls: bool = False
    unprivileged: bool = False

    @property
    def is_trusted(self) -> bool:
        """Whether it is known who answers: a network's address may be another's tomorrow."""
        return self.tls or not self.network

    @property
    def folder(self) -> str | None:
        """Of its socket; None on the network."""
        return None if self.network else dirname(normpath(self.endpoint.address))


@dataclass(frozen=True, slots=True)
class Remembered:
    """What is written down of a handler.

    Attributes:
        runs: Of the driver in a row that it did not survive a minute of, as far as is known; the
            run that wrote it is one of them.
    """

    registration: Registration
    runs: int = 0


@dataclass(frozen=True, slots=True)
class RegisteredHandler:
    """One line of the table.

    Attributes:
        entered: When this run of the driver came to know it.
        runs: See `Remembered`; 0 once it has survived a minute of this run.
        since: When it went Offline; None in other states.
        recalled: Whether an earlier run of the driver knew it. Devices of a Configuration are not
            known before it has answered: it may be the one that reported them.
        on_hold: Whether it is not asked before it registers again.
        conversations: Those that are under way.
    """

    registration: Registration
    entered: datetime
    runs: int = 1
    state: HandlerState = HandlerState.WAITING
    since: datetime | None = None
    recalled: bool = False
    on_hold: bool = False
    conversations: frozenset[Conversation] = frozenset()

    @property
    def endpoint(self) -> Endpoint:
        return self.registration.endpoint

    @property
    def is_proving(self) -> bool:
        """Whether it is not known yet that the driver survives a minute of it."""
        return self.runs > 0 and not self.on_hold

    @property
    def may_go(self) -> bool:
        """Whether nobody uses it, so that it makes room for another."""
        return self.on_hold or (self.state is HandlerState.WAITING and not self.recalled)

    def after(self, event: Event, now: datetime) -> RegisteredHandler:
        """The handler when this has happened to it."""
        state = TRANSITIONS[self.state, event]
        since = (self.since or now) if state is HandlerState.OFFLINE else None
        return replace(self, state=state, since=since)


@dataclass(frozen=True, slots=True)
class HandlerStanding:
    """How one handler of a node does."""

    handler: str
    is_embedded: bool
    state: HandlerState


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
