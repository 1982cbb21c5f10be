"""The table of discovery handlers: Akri's life cycle of a handler, state by state."""

from __future__ import annotations

from datetime import datetime, timedelta

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from driver.api import ConfigurationName
from driver.handlers.registrations import Endpoint, HandlerState, Registration, Remembered
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
ENDPOINT = Endpoint("shelf", "/var/lib/akri/shelf.sock")
SHELF = ConfigurationName("shelf")
ATTIC = ConfigurationName("attic")
SECOND = timedelta(seconds=1)


def a_registration(
    endpoint: Endpoint = ENDPOINT, *, shared: bool = False, unprivileged: bool = False
) -> Registration:
    return Registration(endpoint, network=False, shared=shared, unprivileged=unprivileged)


def recalled(*runs: int, unprivileged: bool = False) -> list[int | None]:
    """How many runs are counted of handlers that a file says this of; None of those on hold."""
    table = HandlerTable()
    numbered = (Endpoint("shelf", f"/{number}") for number in range(len(runs)))
    registrations = (a_registration(e, unprivileged=unprivileged) for e in numbered)
    table.recall(map(Remembered, registrations, runs), (), NOW)
    return [None if handler.on_hold else handler.runs for handler in table]


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
    table.prove(NOW + PROVEN_AFTER)
    assert table.next_due() == NOW + REMOVED_AFTER
    assert table.expire(NOW + REMOVED_AFTER - SECOND) == ()

    assert [h.endpoint for h in table.expire(NOW + REMOVED_AFTER)] == [ENDPOINT]
    assert ENDPOINT not in table
    assert table.removed == {"shelf"}
    assert table.next_due() is None


def test_a_removed_handler_that_registers_is_a_new_one() -> None:
    table = a_table()
    table.recall([Remembered(a_registration())], (), NOW)
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
    table.recall([Remembered(a_registration())], (), NOW)
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


SMALL = Rooms(trusted=Room(4, 3, runs=3), unprivileged=Room(2, 1, runs=1))


def in_use(*endpoints: Endpoint, unprivileged: bool = False) -> HandlerTable:
    """A table of four, in which these are active."""
    table = HandlerTable(SMALL)
    for endpoint in endpoints:
        table.register(a_registration(endpoint, unprivileged=unprivileged), NOW)
        table.reached(endpoint, SHELF, NOW)
    return table


def test_the_table_forgets_who_waits_longest_before_it_refuses() -> None:
    table = in_use(Endpoint("shelf", "/0"), Endpoint("rack", "/1"))
    waiting = [Endpoint("rack", "/2"), Endpoint("shelf", "/3")]
    for endpoint in waiting:
        table.register(a_registration(endpoint), NOW)

    table.register(a_registration(Endpoint("shelf", "/new")), NOW)
    assert waiting[0] not in table
    assert waiting[1] in table

    for handler in list(table):
        table.reached(handler.endpoint, SHELF, NOW)
    with pytest.raises(TableFullError, match=r"^4 discovery handlers are .* another \"udev\"\.$"):
        table.register(a_registration(Endpoint("udev", "/newer")), NOW)


def test_a_name_has_no_more_room_than_its_own() -> None:
    table = in_use(*(Endpoint("shelf", f"/{number}") for number in range(3)))

    with pytest.raises(TableFullError, match="3 discovery handlers are"):
        table.register(a_registration(Endpoint("shelf", "/new")), NOW)
    table.register(a_registration(Endpoint("rack", "/new")), NOW)


def test_handlers_without_privileges_have_room_of_their_own() -> None:
    table = in_use(Endpoint("onvif", "/0"), Endpoint("opcua", "/0"), unprivileged=True)

    for name in ("onvif", "opcua", "shelf"):
        with pytest.raises(TableFullError, match="without privileges"):
            table.register(a_registration(Endpoint(name, "/new"), unprivileged=True), NOW)
    for number in range(3):
        table.register(a_registration(Endpoint("onvif", f"/trusted-{number}")), NOW)
    assert len(list(table)) == 5


def test_who_registers_again_needs_no_room() -> None:
    endpoints = [Endpoint("shelf", f"/{number}") for number in range(3)]
    table = in_use(*endpoints)

    for endpoint in endpoints:
        table.register(a_registration(endpoint), NOW)


def test_what_one_run_knew_has_no_more_room_in_the_next() -> None:
    """A file of an earlier version may hold more."""
    table = HandlerTable(SMALL)
    numbered = [Endpoint("onvif", f"/{number}") for number in range(255)]
    strangers = [Remembered(a_registration(e, unprivileged=True)) for e in numbered]

    table.recall([*strangers, Remembered(a_registration())], (), NOW)

    assert {handler.endpoint for handler in table} == {numbered[0], ENDPOINT}


def test_what_runs_did_not_survive_a_minute_of_is_on_hold_in_the_next() -> None:
    assert recalled(0, unprivileged=True) == [1]
    assert recalled(1, unprivileged=True) == [None]
    assert recalled(0, 1, 2, 3) == [1, 2, 3, None]


def on_hold() -> HandlerTable:
    table = HandlerTable(SMALL)
    table.recall([Remembered(a_registration(), 3)], (), NOW)
    return table


def test_a_handler_on_hold_is_offline_and_removed_unless_it_registers_again() -> None:
    table = on_hold()
    assert (table[ENDPOINT].state, table[ENDPOINT].recalled) == (OFFLINE, True)
    assert table.next_due() == NOW + REMOVED_AFTER
    table.prove(NOW + PROVEN_AFTER)
    assert table.remembered() == (Remembered(a_registration(), 3),)

    assert [h.endpoint for h in table.expire(NOW + REMOVED_AFTER)] == [ENDPOINT]
    assert table.removed == {"shelf"}


def test_a_handler_on_hold_that_registers_again_has_another_minute() -> None:
    table = on_hold()
    table.register(a_registration(), NOW + SECOND)
    assert (table[ENDPOINT].state, table[ENDPOINT].on_hold) == (WAITING, False)
    assert table.next_due() == NOW + SECOND + PROVEN_AFTER
    assert table.remembered() == (Remembered(a_registration(), 3),)

    table.prove(NOW + SECOND + PROVEN_AFTER)
    assert table.remembered() == (Remembered(a_registration(), 0),)


def test_a_handler_on_hold_makes_room_for_another() -> None:
    table = on_hold()
    for number in range(3):
        endpoint = Endpoint("shelf", f"/{number}")
        table.register(a_registration(endpoint), NOW)
        table.reached(endpoint, SHELF, NOW)

    assert ENDPOINT not in table


def test_a_handler_has_proven_itself_after_a_minute_and_no_earlier() -> None:
    table = a_table()
    assert table.remembered() == (Remembered(a_registration(), 1),)
    assert table.next_due() == NOW + PROVEN_AFTER
    table.prove(NOW + PROVEN_AFTER - SECOND)
    assert table[ENDPOINT].runs == 1

    table.register(a_registration(), NOW + SECOND)
    table.prove(NOW + PROVEN_AFTER)
    assert table.remembered() == (Remembered(a_registration(), 0),)


def test_the_oldest_is_written_down_first() -> None:
    table = a_table(a_registration(Endpoint("shelf", "/b")), a_registration(Endpoint("rack", "/a")))
    table.register(a_registration(Endpoint("shelf", "/b")), NOW)

    assert [r.registration.endpoint.address for r in table.remembered()] == ["/b", "/a"]


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
