"""Turns of the network handlers, and the reasons that they tell."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncGenerator
from contextlib import aclosing
from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from driver.devices import Device
from driver.discovery.handler_cycles import MOST_REASONS, Reasons, changes, pause
from driver.discovery.onvif import ws_discovery_client
from driver.discovery.onvif.devices import Address
from driver.discovery.onvif.messages import Match
from driver.discovery.onvif.ws_discovery_client import Answers, ProbeAnswer, Sender, _Listener
from tests.driver.discovery.onvif.cameras import PROBE_MATCH

ONE, OTHER = (Device("a"),), (Device("b"),)


async def test_only_what_is_known_and_new_is_yielded() -> None:
    looks = iter([None, (), (), ONE, ONE, None, ONE, OTHER])

    async def look(_: tuple[Device, ...] | None) -> AsyncGenerator[tuple[Device, ...], None]:
        found = next(looks)
        if found is not None:
            yield found

    async with asyncio.timeout(30), aclosing(changes(look, timedelta())) as answers:
        assert [await anext(answers) for _ in range(3)] == [(), ONE, OTHER]


async def test_a_look_gets_what_was_shown_before_and_tells_step_by_step() -> None:
    seen: list[tuple[Device, ...] | None] = []

    async def look(before: tuple[Device, ...] | None) -> AsyncGenerator[tuple[Device, ...], None]:
        seen.append(before)
        yield ONE
        yield ONE
        yield (*ONE, *OTHER)

    async with asyncio.timeout(30), aclosing(changes(look, timedelta())) as answers:
        assert [await anext(answers) for _ in range(3)] == [ONE, (*ONE, *OTHER), ONE]
    assert seen[:2] == [None, (*ONE, *OTHER)]


@given(st.floats(0, 100))
def test_a_long_look_makes_looks_hardly_rarer(took: float) -> None:
    rest = pause(10.0, took)

    assert 4.5 <= rest <= 11.0
    assert took + rest <= max(11.0, took + 5.5)


def test_reasons_are_logged_once_and_forgotten_with_who_had_them(
    caplog: pytest.LogCaptureFixture,
) -> None:
    reasons = Reasons(logging.getLogger("test"))

    reasons.record("one", ["b.", "a.", "a."])
    reasons.record("one", ["a."])
    reasons.record("other", ["c."])

    assert [record.getMessage() for record in caplog.records] == [
        f"not discovered: {letter}." for letter in "abc"
    ]
    assert reasons.problem == "a. c."
    reasons.forget("one")
    reasons.forget("other")
    assert reasons.problem is None


def test_of_many_reasons_some_are_told(caplog: pytest.LogCaptureFixture) -> None:
    reasons = Reasons(logging.getLogger("test"))

    reasons.record("one", [f"{number:04}." for number in range(1000)])

    assert (reasons.problem or "").endswith(f"0007. And {1000 - MOST_REASONS} more.")
    assert len(caplog.records) == MOST_REASONS + 1


SENDER = Sender("fe80::1", 7)


def heard_from(sender: Sender, *messages: str) -> Answers:
    """What is taken of some answers to the question `q`; 10.0.0.7 is not asked."""
    answers = Answers()
    listener = _Listener("q", answers, lambda host, _: "is bad" if host == "10.0.0.7" else None)
    for message in messages:
        listener.datagram_received(message.encode(), (sender.ip, 3702, 0, sender.zone))
    return answers


def an_answer(urls: str, question: str = "urn:uuid:Q") -> str:
    return PROBE_MATCH.format(uuid="u", scopes="s", urls=urls, relates_to=question)


def test_so_many_answers_to_a_probe_are_read(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ws_discovery_client, "MOST_ANSWERS", 2)
    told = an_answer("http://a/ gopher://a/")

    answers = heard_from(SENDER, "nonsense", told, told)

    heard = ProbeAnswer(("s",), SENDER, frozenset({"a"}))
    assert answers == Answers({Address("http://a/", "u"): {SENDER: heard}}, {}, 1, 0, 1)


@pytest.mark.parametrize("question", ["", "urn:uuid:r", "q q"])
def test_an_answer_to_another_question_tells_nothing(question: str) -> None:
    assert heard_from(SENDER, an_answer("http://a/", question)) == Answers(unasked=1)


def test_an_address_that_is_not_asked_is_told_and_the_others_are_taken() -> None:
    answers = heard_from(SENDER, an_answer("http://10.0.0.7/x http://a/"))

    assert [address.url for address in answers.heard] == ["http://a/"]
    assert answers.reasons() == (
        '"http://10.0.0.7/x", reported by fe80::1, is not contacted: its address is bad.',
    )


def test_a_flood_of_addresses_that_are_not_asked_is_not_kept() -> None:
    urls = [f"http://10.0.0.7:{port}/" for port in range(1, 1000)]
    told = [an_answer(" ".join(urls[start : start + 9])) for start in range(0, 999, 9)]

    assert len(heard_from(SENDER, *told).refused) == ws_discovery_client.MOST_REFUSED


def test_who_tells_of_a_name_after_others_does_not_take_their_place() -> None:
    answers = Answers()
    senders = [Sender(f"10.0.0.{number}") for number in range(9)]
    for sender in senders:
        told = Match("u", ("http://name/",), (sender.ip,))
        answers.take(told, sender, lambda *_: None)

    (heard,) = answers.heard.values()
    assert list(heard) == senders[: ws_discovery_client.MOST_SENDERS]
