"""How often `check` looks, and what it says in the end."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import Any

import pytest

from scheduler_plugin import check_main
from scheduler_plugin.arguments import parse_settings
from scheduler_plugin.check_main import run_check
from scheduler_plugin.checking.setups import Finding, Level
from scheduler_plugin.settings import CheckSettings

WRONG = (Finding(Level.ERROR, "scheduler", "The Lease has no holder.", "look"),)
WELL = (Finding(Level.OK, "scheduler", "It is held.", ""),)


@pytest.fixture
def looks(monkeypatch: pytest.MonkeyPatch) -> list[Sequence[Finding]]:
    """What is found at each look; the last of them stays."""
    found: list[Sequence[Finding]] = []

    @asynccontextmanager
    async def connect(*_: Any, **__: Any) -> AsyncIterator[None]:
        yield

    async def read_setup(*_: Any) -> Sequence[Finding]:
        return found.pop(0) if len(found) > 1 else found[0]

    monkeypatch.setattr(check_main, "connect", connect)
    monkeypatch.setattr(check_main, "read_setup", read_setup)
    monkeypatch.setattr(check_main, "findings_of", lambda setup: setup)
    monkeypatch.setattr(check_main, "AGAIN_SECONDS", 0.01)
    return found


def given(*words: str) -> CheckSettings:
    settings = parse_settings(["check", *words], {})
    assert isinstance(settings, CheckSettings)
    return settings


async def test_it_waits_for_what_is_about_to_be_right(
    looks: list[Sequence[Finding]], capsys: pytest.CaptureFixture[str]
) -> None:
    looks += [WRONG, WRONG, WELL]

    assert await run_check(given("--wait=60"))

    said = capsys.readouterr().out
    assert "It is held." in said
    assert "Nobody" not in said


async def test_what_stays_wrong_is_said_once_the_time_is_over(
    looks: list[Sequence[Finding]], capsys: pytest.CaptureFixture[str]
) -> None:
    looks += [WRONG]

    assert not await run_check(given("--wait=0.05"))

    assert capsys.readouterr().out.count("The Lease has no holder.") == 1


async def test_without_time_to_wait_it_looks_once(looks: list[Sequence[Finding]]) -> None:
    looks += [WRONG, WELL]

    assert not await run_check(given())
