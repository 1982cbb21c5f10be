"""The agenda of the keeper of claims: each claim in its turn, none twice at a time."""

from __future__ import annotations

from binder.keeping.agenda import Agenda
from scheduler_plugin.api import ClaimUid

A, B = ClaimUid("a"), ClaimUid("b")


def test_who_was_asked_for_or_is_due_is_looked_at_once() -> None:
    agenda = Agenda()
    assert agenda.ask([A, B, A])
    agenda.set_alarm(A, 5.0)
    agenda.set_alarm(ClaimUid("later"), 6.0)

    assert agenda.take_asked(5.0) == (A, B)
    assert agenda.take_asked(5.0) == ()
    assert agenda.next_alarm() == 6.0


def test_an_alarm_that_was_dropped_does_not_ring() -> None:
    agenda = Agenda()
    agenda.set_alarm(A, 5.0)
    agenda.drop_alarm(A)

    assert (agenda.next_alarm(), agenda.take_asked(9.0)) == (None, ())
    assert len(agenda) == 0


def test_nothing_is_done_for_one_claim_twice_at_a_time() -> None:
    agenda = Agenda()
    agenda.put(A)
    agenda.begin(A)
    agenda.put(A)
    agenda.put(B)

    assert agenda.next() == B
    agenda.begin(B)
    assert agenda.next() is None
    assert agenda.end(A), "it came again"
    assert agenda.next() == A


def test_what_is_over_leaves_nothing() -> None:
    agenda = Agenda()
    assert not agenda.ask([])
    agenda.ask([A])
    agenda.put(*agenda.take_asked(0.0))
    assert agenda.is_busy
    agenda.begin(A)

    assert not agenda.end(A)
    assert (agenda.is_busy, len(agenda)) == (False, 0)
