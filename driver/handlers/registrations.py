"""Registrations of discovery handlers, and the states that a registered handler goes through.

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

from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from enum import Enum, StrEnum, auto
from posixpath import dirname, normpath

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
