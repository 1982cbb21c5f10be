"""What is asked for is due at once, but not before its rest is over."""

from __future__ import annotations

from scheduler_plugin.paces import Paces


def all_due(paces: Paces[str], now: float) -> list[str]:
    found = []
    while (thing := paces.take(now)) is not None:
        found.append(thing)
    return found


def test_what_is_asked_for_is_due_at_once_and_once() -> None:
    paces = Paces[str]()
    for thing in ("b", "a", "b"):
        paces.ask(thing, 10.0)

    assert paces.seconds_to_next(10.0) == 0.0
    assert all_due(paces, 10.0) == ["b", "a"]
    assert paces.seconds_to_next(10.0) is None


def test_what_rests_is_due_when_its_rest_is_over_and_keeps_nobody_waiting() -> None:
    paces = Paces[str]()
    paces.rest("a", 11.0)
    paces.ask("a", 10.25)
    paces.ask("b", 10.5)

    assert all_due(paces, 10.5) == ["b"]
    assert paces.seconds_to_next(10.5) == 0.5
    assert all_due(paces, 10.9) == []
    assert all_due(paces, 11.0) == ["a"]


def test_rest_that_is_over_delays_nothing() -> None:
    paces = Paces[str]()
    paces.rest("a", 11.0)
    paces.ask("a", 12.0)

    assert paces.seconds_to_next(12.0) == 0.0


def test_asked_again_while_it_is_being_done_it_is_due_again() -> None:
    paces = Paces[str]()
    paces.ask("a", 10.0)
    assert paces.take(10.0) == "a"
    paces.ask("a", 10.1)
    paces.rest("a", 11.2)

    assert all_due(paces, 10.1) == ["a"]
    paces.ask("a", 10.3)
    assert paces.seconds_to_next(10.2) == 1.0
