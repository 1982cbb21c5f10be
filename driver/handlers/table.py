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
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass, field, replace
from datetime import datetime, timedelta
from enum import Enum, StrEnum, auto

REMOVED_AFTER = timedelta(minutes=5)
"""How long a handler may be Offline and stay registered."""

MOST_HANDLERS = 256
"""Of one node; a handler that registers from ever new places must not fill the memory."""


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
    """Raised when a node has more handlers than anybody needs, and all are in use."""


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
    """

    endpoint: Endpoint
    network: bool
    shared: bool
    tls: bool = False

    @property
    def is_trusted(self) -> bool:
        """Whether it is known who answers: a network's address may be another's tomorrow."""
        return self.tls or not self.network


@dataclass(frozen=True, slots=True)
class RegisteredHandler:
    """One line of the table.

    Attributes:
        since: When it went Offline; None in other states.
        recalled: Whether an earlier run of the driver knew it. Devices of a Configuration are not
            known before it has answered: it may be the one that reported them.
        conversations: Those that are under way.
    """

    registration: Registration
    state: HandlerState = HandlerState.WAITING
    since: datetime | None = None
    recalled: bool = False
    conversations: frozenset[Conversation] = frozenset()

    @property
    def endpoint(self) -> Endpoint:
        return self.registration.endpoint

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

    def recall(self, registrations: Iterable[Registration], removed: Iterable[str] = ()) -> None:
        """Enter what an earlier run of the driver knew."""
        self.removed.update(removed)
        for registration in registrations:
            handler = RegisteredHandler(registration, recalled=True)
            self._handlers[registration.endpoint] = handler

    def register(self, registration: Registration, now: datetime) -> None:
        """A handler registers, for the first time or again.

        Raises:
            TableFullError: If there is no room for it.
        """
        known = self._handlers.get(registration.endpoint)
        if known is None:
            self._make_room()
            known = RegisteredHandler(registration)
        handler = replace(known, registration=registration).after(Event.REGISTERED, now)
        self._handlers[registration.endpoint] = handler
        self.removed.discard(registration.endpoint.name)

    def _make_room(self) -> None:
        if len(self._handlers) < MOST_HANDLERS:
            return
        for endpoint, handler in self._handlers.items():
            if handler.state is HandlerState.WAITING and not handler.recalled:
                del self._handlers[endpoint]
                return
        raise TableFullError(f"{MOST_HANDLERS} discovery handlers are registered, and all in use")

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

    def next_expiry(self) -> datetime | None:
        """When a handler is to be removed, if nothing happens before."""
        times = (h.since + REMOVED_AFTER for h in self._handlers.values() if h.since)
        return min(times, default=None)


_FIELDS = {"name": str, "address": str, "network": bool, "shared": bool}


def dump(registrations: Iterable[Registration], removed: Collection[str] = ()) -> bytes:
    """The content of the file.

    Args:
        registrations: Of the handlers that there are.
        removed: See `HandlerTable.removed`.
    """
    handlers = [
        {**asdict(r.endpoint), "network": r.network, "shared": r.shared, "tls": r.tls}
        for r in registrations
    ]
    content = {"version": 1, "handlers": handlers, "removed": sorted(removed)}
    return json.dumps(content, indent=1).encode()


def load(content: bytes) -> tuple[Registration, ...]:
    """The registrations in a file, as far as it can be read: handlers register again anyway."""
    try:
        entries = json.loads(content)["handlers"]
        return tuple(_registration(entry) for entry in entries)
    except (ValueError, TypeError, KeyError):
        return ()


def load_removed(content: bytes) -> frozenset[str]:
    """The names of removed handlers in a file; none where it cannot be read."""
    try:
        names = json.loads(content).get("removed", ())
        return frozenset(name for name in names if isinstance(name, str))
    except (ValueError, TypeError, AttributeError):
        return frozenset()


def _registration(entry: dict[str, object]) -> Registration:
    for name, kind in _FIELDS.items():
        if type(entry[name]) is not kind:
            raise ValueError(f"{name} is no {kind.__name__}")
    endpoint = Endpoint(str(entry["name"]), str(entry["address"]))
    return Registration(
        endpoint,
        network=bool(entry["network"]),
        shared=bool(entry["shared"]),
        tls=entry.get("tls") is True,  # earlier versions knew none
    )
