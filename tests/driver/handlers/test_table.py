"""The table of discovery handlers: Akri's life cycle of a handler, state by state."""

from __future__ import annotations

from datetime import datetime, timedelta

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from driver.api import ConfigurationName
from driver.handlers.table import (
    MOST_HANDLERS,
    REMOVED_AFTER,
    Endpoint,
    HandlerState,
    HandlerTable,
    Registration,
    TableFullError,
)
from tests.driver.builders import NOW

WAITING, ACTIVE, OFFLINE = HandlerState
ENDPOINT = Endpoint("shelf", "/var/lib/akri/shelf.sock")
SHELF = ConfigurationName("shelf")
ATTIC = ConfigurationName("attic")
SECOND = timedelta(seconds=1)


def a_registration(endpoint: Endpoint = ENDPOINT, *, shared: bool = False) -> Registration:
    return Registration(endpoint, network=False, shared=shared)


def a_table(*registrations: Registration) -> HandlerTable:
    table = HandlerTable()
    for registration in registrations or (a_registration(),):
        table.register(registration, NOW)
    return table


def test_a_handler_that_registers_waits() -> None:
    assert a_table()[ENDPOINT].state is WAITING


def test_a_handler_is_active_while_one_conversation_is_under_way() -> None:
    table = a_table()
    table.reached(ENDPOINT, SHELF, NOW)
    table.reached(ENDPOINT, ATTIC, NOW)
    table.lost(ENDPOINT, SHELF, NOW)
    assert table[ENDPOINT].state is ACTIVE

    table.lost(ENDPOINT, ATTIC, NOW + SECOND)
    assert (table[ENDPOINT].state, table[ENDPOINT].since) == (OFFLINE, NOW + SECOND)


def test_the_time_of_going_offline_does_not_move_with_further_attempts() -> None:
    table = a_table()
    table.lost(ENDPOINT, SHELF, NOW)
    table.lost(ENDPOINT, SHELF, NOW + SECOND)

    assert table[ENDPOINT].since == NOW


def test_a_handler_is_removed_after_five_minutes_offline_and_no_earlier() -> None:
    table = a_table()
    table.lost(ENDPOINT, SHELF, NOW)
    assert table.next_expiry() == NOW + REMOVED_AFTER
    assert table.expire(NOW + REMOVED_AFTER - SECOND) == ()

    assert [h.endpoint for h in table.expire(NOW + REMOVED_AFTER)] == [ENDPOINT]
    assert ENDPOINT not in table
    assert table.removed == {"shelf"}
    assert table.next_expiry() is None


def test_a_removed_handler_that_registers_is_a_new_one() -> None:
    table = a_table()
    table.recall([a_registration()])
    table.lost(ENDPOINT, SHELF, NOW)
    table.expire(NOW + REMOVED_AFTER)

    table.register(a_registration(), NOW + REMOVED_AFTER)
    assert (table[ENDPOINT].state, table[ENDPOINT].recalled) == (WAITING, False)
    assert table.removed == set()


def test_registering_again_keeps_what_is_known_and_takes_what_is_new() -> None:
    table = a_table()
    table.reached(ENDPOINT, SHELF, NOW)
    table.register(a_registration(shared=True), NOW)

    handler = table[ENDPOINT]
    assert (handler.state, handler.conversations) == (ACTIVE, frozenset({SHELF}))
    assert handler.registration.shared


def test_the_last_configuration_makes_an_active_handler_wait_and_an_offline_one_not() -> None:
    other = Endpoint("shelf", "10.0.0.7:10000")
    table = a_table(a_registration(), a_registration(other))
    table.reached(ENDPOINT, SHELF, NOW)
    table.lost(other, SHELF, NOW)
    table.use({"shelf"}, NOW)
    assert [h.state for h in table.named("shelf")] == [ACTIVE, OFFLINE]

    table.use((), NOW + SECOND)
    assert [h.state for h in table.named("shelf")] == [WAITING, OFFLINE]
    assert table[other].since == NOW


def test_a_recalled_handler_is_waited_for_as_long_as_a_configuration_names_it() -> None:
    table = HandlerTable()
    table.recall([a_registration()])
    table.use({"shelf"}, NOW)
    assert table[ENDPOINT].recalled

    table.use((), NOW)
    assert not table[ENDPOINT].recalled


def test_what_is_told_of_a_removed_handler_changes_nothing() -> None:
    table = HandlerTable()
    table.reached(ENDPOINT, SHELF, NOW)
    table.lost(ENDPOINT, SHELF, NOW)
    table.ended(ENDPOINT, SHELF)

    assert list(table) == []


def test_the_table_forgets_who_waits_longest_before_it_refuses() -> None:
    endpoints = [Endpoint("shelf", f"/{number}") for number in range(MOST_HANDLERS)]
    table = a_table(*map(a_registration, endpoints))
    table.reached(endpoints[0], SHELF, NOW)

    table.register(a_registration(Endpoint("shelf", "/new")), NOW)
    assert endpoints[0] in table
    assert endpoints[1] not in table

    for handler in list(table):
        table.reached(handler.endpoint, SHELF, NOW)
    with pytest.raises(TableFullError, match="256 discovery handlers"):
        table.register(a_registration(Endpoint("shelf", "/newer")), NOW)


class Life(RuleBasedStateMachine):
    """The seed's table, told in its own words beside ours.

    Each handler is `Waiting` when it registers, `Active` when the driver has connected to it for a
    Configuration, `Offline` when the driver cannot connect or loses the connection, gone after five
    minutes of that, and `Waiting` when its last Configuration is deleted; unless it is Offline.
    """

    endpoints = st.sampled_from([ENDPOINT, Endpoint("shelf", "b"), Endpoint("udev", "a")])
    conversations = st.sampled_from([SHELF, ATTIC])

    def __init__(self) -> None:
        super().__init__()
        self.table = HandlerTable()
        self.now = NOW
        self.expected: dict[Endpoint, HandlerState] = {}
        self.connected: dict[Endpoint, set[ConfigurationName]] = {}
        self.offline: dict[Endpoint, datetime] = {}

    @rule(endpoint=endpoints)
    def registers(self, endpoint: Endpoint) -> None:
        self.table.register(a_registration(endpoint), self.now)
        if self.expected.get(endpoint) is not ACTIVE:
            self.expected[endpoint] = WAITING
            self.connected[endpoint] = set()
            self.offline.pop(endpoint, None)

    @rule(endpoint=endpoints, conversation=conversations)
    def connects(self, endpoint: Endpoint, conversation: ConfigurationName) -> None:
        self.table.reached(endpoint, conversation, self.now)
        if endpoint in self.expected:
            self.expected[endpoint] = ACTIVE
            self.connected[endpoint].add(conversation)
            self.offline.pop(endpoint, None)

    @rule(endpoint=endpoints, conversation=conversations)
    def fails(self, endpoint: Endpoint, conversation: ConfigurationName) -> None:
        self.table.lost(endpoint, conversation, self.now)
        if endpoint in self.expected:
            self.connected[endpoint].discard(conversation)
            if not self.connected[endpoint]:
                self.expected[endpoint] = OFFLINE
                self.offline.setdefault(endpoint, self.now)

    @rule(names=st.sets(st.sampled_from(["shelf", "udev"])))
    def configurations_are(self, names: set[str]) -> None:
        self.table.use(names, self.now)
        for endpoint, state in self.expected.items():
            if endpoint.name not in names:
                self.connected[endpoint].clear()
                self.expected[endpoint] = WAITING if state is ACTIVE else state

    @rule(seconds=st.sampled_from([1, 100, 299, 300]))
    def time_passes(self, seconds: int) -> None:
        self.now += timedelta(seconds=seconds)
        gone = {e for e, since in self.offline.items() if self.now - since >= REMOVED_AFTER}
        assert {h.endpoint for h in self.table.expire(self.now)} == gone
        for endpoint in gone:
            del self.expected[endpoint], self.connected[endpoint], self.offline[endpoint]

    @invariant()
    def the_table_is_the_seeds(self) -> None:
        assert {h.endpoint: h.state for h in self.table} == self.expected
        assert {h.endpoint: h.since for h in self.table if h.since} == self.offline


Life.TestCase.settings = settings(max_examples=30, stateful_step_count=30, deadline=None)
TestLife = Life.TestCase
