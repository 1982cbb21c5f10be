"""Turns of the network handlers, and the reasons that they tell."""

from __future__ import annotations

import asyncio
import logging
from contextlib import aclosing
from datetime import timedelta

import pytest

from driver.devices import Device
from driver.discovery import ws_discovery
from driver.discovery.onvif_devices import Address
from driver.discovery.turns import MOST_REASONS, Reasons, changes
from driver.discovery.ws_discovery import Answers, Heard, _Listener
from tests.driver.discovery.cameras import PROBE_MATCH

ONE, OTHER = (Device("a"),), (Device("b"),)


async def test_only_what_is_known_and_new_is_yielded() -> None:
    looks = iter([None, (), (), ONE, ONE, None, ONE, OTHER])

    async def look() -> tuple[Device, ...] | None:
        return next(looks)

    async with asyncio.timeout(30), aclosing(changes(look, timedelta())) as answers:
        assert [await anext(answers) for _ in range(3)] == [(), ONE, OTHER]


def test_reasons_are_logged_once_and_forgotten_with_who_had_them(
    caplog: pytest.LogCaptureFixture,
) -> None:
    reasons = Reasons(logging.getLogger("test"))

    reasons.tell("one", ["b.", "a.", "a."])
    reasons.tell("one", ["a."])
    reasons.tell("other", ["c."])

    assert [record.getMessage() for record in caplog.records] == [
        f"not discovered: {letter}." for letter in "abc"
    ]
    assert reasons.problem == "a. c."
    reasons.forget("one")
    reasons.forget("other")
    assert reasons.problem is None


def test_of_many_reasons_some_are_told(caplog: pytest.LogCaptureFixture) -> None:
    reasons = Reasons(logging.getLogger("test"))

    reasons.tell("one", [f"{number:04}." for number in range(1000)])

    assert (reasons.problem or "").endswith(f"0007. And {1000 - MOST_REASONS} more.")
    assert len(caplog.records) == MOST_REASONS + 1


def test_so_many_answers_to_a_probe_are_read(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ws_discovery, "MOST_ANSWERS", 2)
    answers = Answers()
    listener = _Listener(answers)
    match = PROBE_MATCH.format(uuid="u", scopes="s", urls="http://a/ gopher://a/")

    for message in (b"nonsense", match.encode(), match.encode()):
        listener.datagram_received(message, ("fe80::1", 3702, 0, 7))

    assert answers == Answers({Address("http://a/", "u"): Heard(("s",), 7)}, 1, 1)
