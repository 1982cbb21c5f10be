"""The debugEcho handler: details, devices, and the file that takes them away."""

from __future__ import annotations

import asyncio
from contextlib import aclosing
from datetime import timedelta
from pathlib import Path

import pytest

from driver.api import Problem
from driver.device_health import Degraded, degraded
from driver.devices import Device, device_hash
from driver.discovery.debug_echo.handler import (
    DebugEchoDetails,
    DebugEchoHandler,
    parse_debug_echo_details,
)
from driver.discovery.handlers import Handlers, HandlerSettings, parse_details

PATH = "spec.discoveryHandler.discoveryDetails"
AKRIS = 'descriptions:\n- "foo0"\n- "foo1"\n'


def test_details_of_akris_chart_are_taken() -> None:
    assert parse_debug_echo_details(AKRIS) == DebugEchoDetails(("foo0", "foo1"), shared=None)


def test_each_description_is_one_device() -> None:
    details = parse_debug_echo_details("{descriptions: [b, a, b], shared: false}")

    assert details == DebugEchoDetails(("a", "b"), shared=False)


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("", Problem(f"{PATH}.descriptions", "A list of strings must be given.")),
        (
            "descriptions: [a, 7]",
            Problem(
                f"{PATH}.descriptions[1]",
                "Line 1, column 19: a string is expected here; put it in quotes if it is one.",
            ),
        ),
        (
            "descriptions: [a]\nshared: maybe",
            Problem(f"{PATH}.shared", "Line 2, column 9: true or false is expected here."),
        ),
        (
            "descriptions: [a]\nshare: true",
            Problem(
                f"{PATH}.share", "Line 2, column 1: unknown field; there are descriptions, shared."
            ),
        ),
    ],
)
def test_what_is_wrong_has_a_path_and_a_place(text: str, problem: Problem) -> None:
    assert parse_debug_echo_details(text) == (problem,)


def test_ids_hash_as_akris() -> None:
    assert [device_hash(f"foo{i}", None) for i in (0, 1)] == ["8120fe", "a19705"]


async def test_the_file_takes_the_devices_away_and_brings_them_back(tmp_path: Path) -> None:
    file = tmp_path / "availability.txt"
    handler = DebugEchoHandler(file, timedelta(milliseconds=1))
    both = tuple(Device(d, {"DEBUG_ECHO_DESCRIPTION": d}) for d in ("foo0", "foo1"))

    async with asyncio.timeout(30), aclosing(handler.discover(_details())) as answers:
        assert await anext(answers) == both
        file.write_text("OFFLINE\n")
        assert await anext(answers) == ()
        file.write_text("ONLINE\n")
        assert await anext(answers) == both


async def test_the_file_makes_them_ill_and_well_again(tmp_path: Path) -> None:
    file = tmp_path / "availability.txt"
    handler = DebugEchoHandler(file, timedelta(milliseconds=1))

    async with asyncio.timeout(30), aclosing(handler.discover(_details())) as answers:
        well = await anext(answers)
        file.write_text("DEGRADED\n")
        ill = await anext(answers)
        file.write_text("DEGRADED NoExecute\n")
        evicting = await anext(answers)
        file.write_text("ONLINE\n")
        assert await anext(answers) == well

    assert [degraded(device.properties) for device in well] == [None, None]
    assert [degraded(device.properties) for device in ill] == [
        Degraded("the file says so", "NoSchedule")
    ] * 2
    assert {d.effect for device in evicting if (d := degraded(device.properties))} == {"NoExecute"}
    assert [device.id for device in ill] == [device.id for device in well]


async def test_a_handler_that_starts_offline_says_so(tmp_path: Path) -> None:
    file = tmp_path / "availability.txt"
    file.write_bytes(b"\xffOFFLINE")

    handler = Handlers(HandlerSettings(debug_echo_file=file)).named("debugEcho")
    async with asyncio.timeout(30), aclosing(handler.discover(_details())) as answers:
        assert await anext(answers) == ()
    assert handler.problem is None


@pytest.mark.parametrize("told", [True, False])
def test_whether_devices_are_shared_is_said_by_the_details_or_else_the_settings(
    told: bool,
) -> None:
    handler = Handlers(HandlerSettings(debug_echo_shared=told)).named("debugEcho")

    assert handler.is_shared(parse_details("debugEcho", AKRIS)) is told
    assert handler.is_shared(parse_details("debugEcho", f"{AKRIS}shared: true"))
    assert not handler.is_shared(parse_details("debugEcho", f"{AKRIS}shared: false"))


def _details() -> DebugEchoDetails:
    return DebugEchoDetails(("foo0", "foo1"))
