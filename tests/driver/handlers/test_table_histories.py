"""Histories of the handler table, held to what the design says of each state."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime, timedelta

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from driver.handlers.table import (
    REMOVED_AFTER,
    Endpoint,
    HandlerState,
    HandlerTable,
    Registration,
)
from tests.driver.builders import NOW

WAITING, ACTIVE, OFFLINE = HandlerState
ENDPOINTS = [
    Endpoint("shelf", "/a.sock"),
    Endpoint("shelf", "/b.sock"),
    Endpoint("rack", "/c.sock"),
]

which = st.sampled_from(ENDPOINTS)
conversation = st.sampled_from(["floor-1", "floor-2"])


@dataclass
class Expected:
    """What the design says of one registered handler."""

    offline_since: datetime | None = None
    was_needed: bool = False
    conversations: set[str] = field(default_factory=set)

    @property
    def state(self) -> HandlerState:
        if self.offline_since is not None:
            return OFFLINE
        return ACTIVE if self.was_needed else WAITING


class Histories(RuleBasedStateMachine):
    """Handlers register, are reached and lost; Configurations come and go; time passes."""

    def __init__(self) -> None:
        super().__init__()
        self.table = HandlerTable()
        self.now = NOW
        self.names = {"shelf", "rack"}
        self.expected: dict[Endpoint, Expected] = {}

    @rule(endpoint=which)
    def register(self, endpoint: Endpoint) -> None:
        """When it registers it waits, unless it is at work."""
        self.table.register(Registration(endpoint, network=False, shared=False), self.now)
        handler = self.expected.setdefault(endpoint, Expected())
        if handler.offline_since is not None:
            handler.offline_since, handler.was_needed = None, False

    @precondition(lambda self: self.names)
    @rule(endpoint=which, name=conversation)
    def reach(self, endpoint: Endpoint, name: str) -> None:
        """It is Active once it is connected, wherever it was before."""
        if endpoint.name not in self.names:
            return
        self.table.reached(endpoint, name, self.now)
        if handler := self.expected.get(endpoint):
            handler.offline_since, handler.was_needed = None, True
            handler.conversations.add(name)

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

    @rule(names=st.sets(st.sampled_from(["shelf", "rack"])))
    def configure(self, names: set[str]) -> None:
        """When its last Configuration goes it waits again; one that is Offline stays so."""
        self.names = names
        self.table.use(names, self.now)
        for endpoint, handler in self.expected.items():
            if endpoint.name not in names:
                handler.was_needed, handler.conversations = False, set()

    @rule(minutes=st.sampled_from([1, 2, 4, 5]))
    def wait(self, minutes: int) -> None:
        """It is removed when it has been Offline for five minutes, and not before."""
        self.now += timedelta(minutes=minutes)
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


TestHistories = Histories.TestCase
TestHistories.settings = settings(max_examples=25, stateful_step_count=30)
