"""Registrations of discovery handlers, and the states that a registered handler goes through.

                 reached, for some Configuration
    WAITING ───────────────────────────────────────► ACTIVE
     ▲  ▲                                             │  │
     │  └──────── its last Configuration goes ────────┘  │ not reached, or lost
     │                                                   ▼
     └───────────────── registers again ────────────── OFFLINE ──── five minutes ───► removed

`TRANSITIONS` has the next state for each state and event. An Offline handler stays Offline when its
last Configuration goes: else it would never be removed. It is Active again as soon as it is
reached.

A handler has a conversation for each Configuration that names it. It is lost when the last of them
ends with an error.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from enum import Enum, StrEnum, auto
from posixpath import dirname, normpath

Conversation = int | str
"""Identifies a conversation with a handler."""


class HandlerState(StrEnum):
    """The state of a handler on this node, in Akri's words."""

    WAITING = "Waiting"
    ACTIVE = "Active"
    OFFLINE = "Offline"


class Event(Enum):
    """An event of a handler."""

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


@dataclass(frozen=True, slots=True, order=True)
class Endpoint:
    """Name and address of a handler; no two handlers have the same.

    Attributes:
        name: The name that Configurations give.
        address: The path of a UNIX socket, or `<host>:<port>`.
    """

    name: str
    address: str


@dataclass(frozen=True, slots=True)
class Registration:
    """The registration of a handler.

    Attributes:
        network: True: it listens on the network. False: it listens at a UNIX socket.
        shared: Whether several nodes may see the same device of it.
        tls: Whether it uses mutual TLS; only on the network.
        unprivileged: Whether a process without privileges on the node may listen there.
    """

    endpoint: Endpoint
    network: bool
    shared: bool
    tls: bool = False
    unprivileged: bool = False

    @property
    def is_trusted(self) -> bool:
        """Whether the handler is authenticated: another host may get its network address."""
        return self.tls or not self.network

    @property
    def folder(self) -> str | None:
        """The folder of its socket; None on the network."""
        return None if self.network else dirname(normpath(self.endpoint.address))


@dataclass(frozen=True, slots=True)
class Remembered:
    """The stored record of a handler.

    Attributes:
        runs: How many runs of the driver in a row ended within a minute of knowing this handler,
            as far as is known; the run that wrote the record counts.
    """

    registration: Registration
    runs: int = 0


@dataclass(frozen=True, slots=True)
class RegisteredHandler:
    """A registered handler and its state.

    Attributes:
        entered: When this run of the driver came to know it.
        runs: See `Remembered`; 0 after the driver has run for a minute with it.
        since: When it went Offline; None in other states.
        recalled: Whether it was restored from an earlier run of the driver. The devices of a
            Configuration are unknown before it has answered: it may have reported them.
        on_hold: Whether it is not called before it registers again.
        conversations: The open conversations.
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
        """Whether the driver has not yet run for a minute with it."""
        return self.runs > 0 and not self.on_hold

    @property
    def may_go(self) -> bool:
        """Whether it is unused, so that another may replace it."""
        return self.on_hold or (self.state is HandlerState.WAITING and not self.recalled)

    def after(self, event: Event, now: datetime) -> RegisteredHandler:
        """The handler after an event."""
        state = TRANSITIONS[self.state, event]
        since = (self.since or now) if state is HandlerState.OFFLINE else None
        return replace(self, state=state, since=since)


@dataclass(frozen=True, slots=True)
class HandlerStanding:
    """The state of one handler of a node."""

    handler: str
    is_embedded: bool
    state: HandlerState
