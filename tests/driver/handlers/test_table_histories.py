"""Histories of the handler table, held to what the design says of each state."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass, field
from datetime import datetime, timedelta

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from driver.handlers.registrations import Endpoint, HandlerState, Registration
from driver.handlers.table import (
    PROVEN_AFTER,
    REMOVED_AFTER,
    HandlerTable,
    Room,
    Rooms,
    TableFullError,
)
from tests.driver.builders import NOW

WAITING, ACTIVE, OFFLINE = HandlerState
NETWORK = "/network"
ENDPOINTS = [
    Endpoint("shelf", "/a.sock"),
    Endpoint("shelf", "/b.sock"),
    Endpoint("shelf", "/c.sock"),
    Endpoint("rack", "/d.sock"),
    Endpoint("rack", "/e.sock"),
    Endpoint("shelf", f"{NETWORK}/f.sock"),
    Endpoint("shelf", f"{NETWORK}/g.sock"),
    Endpoint("rack", f"{NETWORK}/h.sock"),
    Endpoint("onvif", f"{NETWORK}/i.sock"),
]
ROOMS = Rooms(trusted=Room(3, 2, runs=3), unprivileged=Room(2, 1, runs=1))


def a_registration(endpoint: Endpoint) -> Registration:
    unprivileged = endpoint.address.startswith(NETWORK)
    return Registration(endpoint, network=False, shared=False, unprivileged=unprivileged)


which = st.sampled_from(ENDPOINTS)
conversation = st.sampled_from(["floor-1", "floor-2"])


@dataclass
class Expected:
    """What the design says of one registered handler."""

    entered: datetime
    runs: int = 1
    recalled: bool = False
    on_hold: bool = False
    offline_since: datetime | None = None
    was_needed: bool = False
    conversations: set[str] = field(default_factory=set)

    @property
    def state(self) -> HandlerState:
        if self.offline_since is not None:
            return OFFLINE
        return ACTIVE if self.was_needed else WAITING

    @property
    def is_unused(self) -> bool:
        return self.on_hold or (self.state is WAITING and not self.recalled)


class Histories(RuleBasedStateMachine):
    """Handlers register, are reached and lost; Configurations come and go; time passes.

    The driver is killed at times, and reads what it wrote down.
    """

    def __init__(self) -> None:
        super().__init__()
        self.table = HandlerTable(ROOMS)
        self.now = NOW
        self.names = {"shelf", "rack", "onvif"}
        self.expected: dict[Endpoint, Expected] = {}

    @rule(endpoint=which)
    def register(self, endpoint: Endpoint) -> None:
        """When it registers it waits, unless it is at work; one that waits goes for it, or none."""
        registration = a_registration(endpoint)
        if endpoint not in self.expected and (crowd := self.crowd(registration)):
            may_go = [e for e in crowd if self.expected[e].is_unused]
            if not may_go:
                with pytest.raises(TableFullError):
                    self.table.register(registration, self.now)
                return
            del self.expected[may_go[0]]
        self.table.register(registration, self.now)
        handler = self.expected.setdefault(endpoint, Expected(self.now))
        if handler.on_hold:
            handler.entered, handler.on_hold = self.now, False
        if handler.offline_since is not None:
            handler.offline_since, handler.was_needed = None, False

    def crowd(self, registration: Registration) -> list[Endpoint]:
        """Those that take up all room that there is for it, the oldest first."""
        unprivileged = registration.unprivileged
        room = ROOMS.unprivileged if unprivileged else ROOMS.trusted
        alike = [e for e in self.expected if a_registration(e).unprivileged is unprivileged]
        named = [e for e in alike if e.name == registration.endpoint.name]
        if len(named) == room.of_a_name:
            return named
        return alike if len(alike) == room.handlers else []

    @rule()
    def restart(self) -> None:
        """A handler is on hold when too many runs in a row ended in its first minute."""
        remembered, removed = self.table.remembered(), set(self.table.removed)
        self.table = HandlerTable(ROOMS)
        self.table.recall(remembered, removed, self.now)
        before, self.expected = self.expected, {}
        for endpoint, handler in before.items():
            again = Expected(self.now, handler.runs + 1, recalled=True)
            if handler.runs >= (1 if a_registration(endpoint).unprivileged else 3):
                again.runs, again.on_hold, again.offline_since = handler.runs, True, self.now
            self.expected[endpoint] = again

    @precondition(lambda self: self.names)
    @rule(endpoint=which, name=conversation)
    def reach(self, endpoint: Endpoint, name: str) -> None:
        """It is Active once it is connected, wherever it was before; on hold it is not asked."""
        if endpoint.name not in self.names or self.is_on_hold(endpoint):
            return
        self.table.reached(endpoint, name, self.now)
        if handler := self.expected.get(endpoint):
            handler.offline_since, handler.was_needed = None, True
            handler.conversations.add(name)

    def is_on_hold(self, endpoint: Endpoint) -> bool:
        return endpoint in self.expected and self.expected[endpoint].on_hold

    @rule(endpoint=which, name=conversation)
    def lose(self, endpoint: Endpoint, name: str) -> None:
        """It is Offline from the moment that no conversation is under way, and not from a later."""
        if endpoint.name not in self.names:
            return
        self.table.lost(endpoint, name, self.now)
        if handler := self.expected.get(endpoint):
            handler.conversations.discard(name)
            if not handler.conversations:
                handler.offline_since = handler.offline_since or self.now

    @rule(endpoint=which, name=conversation)
    def end(self, endpoint: Endpoint, name: str) -> None:
        """That we hang up says nothing of the handler."""
        self.table.ended(endpoint, name)
        if handler := self.expected.get(endpoint):
            handler.conversations.discard(name)

    @rule(names=st.sets(st.sampled_from(["shelf", "rack", "onvif"])))
    def configure(self, names: set[str]) -> None:
        """When its last Configuration goes it waits again; one that is Offline stays so."""
        self.names = names
        self.table.use(names, self.now)
        for endpoint, handler in self.expected.items():
            if endpoint.name not in names:
                handler.was_needed, handler.conversations, handler.recalled = False, set(), False

    @rule(minutes=st.sampled_from([0.5, 1, 2, 4, 5]))
    def wait(self, minutes: float) -> None:
        """It is removed when it has been Offline for five minutes, and not before.

        The driver has survived it when it has known it for a minute.
        """
        self.now += timedelta(minutes=minutes)
        self.table.prove(self.now)
        for handler in self.expected.values():
            if self.now - handler.entered >= PROVEN_AFTER and not handler.on_hold:
                handler.runs = 0
        due = {
            endpoint
            for endpoint, handler in self.expected.items()
            if handler.offline_since and self.now - handler.offline_since >= REMOVED_AFTER
        }
        removed = {handler.endpoint for handler in self.table.expire(self.now)}
        assert removed == due
        assert {endpoint.name for endpoint in due} <= self.table.removed
        for endpoint in due:
            del self.expected[endpoint]

    @invariant()
    def the_table_says_so(self) -> None:
        told = {h.endpoint: (h.state, h.since, set(h.conversations)) for h in self.table}
        assert told == {
            endpoint: (handler.state, handler.offline_since, handler.conversations)
            for endpoint, handler in self.expected.items()
        }
        assert {h.endpoint: (h.runs, h.on_hold) for h in self.table} == {
            endpoint: (handler.runs, handler.on_hold) for endpoint, handler in self.expected.items()
        }

    @invariant()
    def the_oldest_is_first(self) -> None:
        """So that the next run has room for it, if for any."""
        oldest = [remembered.registration.endpoint for remembered in self.table.remembered()]
        assert oldest == list(self.expected)


TestHistories = Histories.TestCase
TestHistories.settings = settings(max_examples=50, stateful_step_count=40)


class Neighbours(RuleBasedStateMachine):
    """Whatever handlers without privileges do, the others fare as if they were alone."""

    def __init__(self) -> None:
        super().__init__()
        self.table, self.alone = HandlerTable(ROOMS), HandlerTable(ROOMS)
        self.now = NOW

    def tables(self, endpoint: Endpoint) -> list[HandlerTable]:
        registration = a_registration(endpoint)
        return [self.table] if registration.unprivileged else [self.table, self.alone]

    @rule(endpoint=which)
    def register(self, endpoint: Endpoint) -> None:
        for table in self.tables(endpoint):
            with suppress(TableFullError):
                table.register(a_registration(endpoint), self.now)

    @rule(endpoint=which, name=conversation)
    def reach(self, endpoint: Endpoint, name: str) -> None:
        for table in self.tables(endpoint):
            table.reached(endpoint, name, self.now)

    @rule(endpoint=which, name=conversation)
    def lose(self, endpoint: Endpoint, name: str) -> None:
        for table in self.tables(endpoint):
            table.lost(endpoint, name, self.now)

    @rule(minutes=st.sampled_from([1, 5]))
    def wait(self, minutes: int) -> None:
        self.now += timedelta(minutes=minutes)
        for table in (self.table, self.alone):
            table.prove(self.now)
            table.expire(self.now)

    @rule()
    def restart(self) -> None:
        remembered = self.table.remembered(), self.alone.remembered()
        self.table, self.alone = HandlerTable(ROOMS), HandlerTable(ROOMS)
        self.table.recall(remembered[0], (), self.now)
        self.alone.recall(remembered[1], (), self.now)

    @invariant()
    def they_are_as_if_alone(self) -> None:
        others = [h for h in self.table if not h.registration.unprivileged]
        assert others == list(self.alone)


TestNeighbours = Neighbours.TestCase
TestNeighbours.settings = settings(max_examples=50, stateful_step_count=40)
