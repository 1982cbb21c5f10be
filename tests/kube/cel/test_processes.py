"""CEL of users, in a process that may take too long, want too much memory, or die."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
from collections.abc import AsyncIterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
import uvloop

from kube.cel import processes
from kube.cel.api import CelProcess, NotEvaluatedError, TooSlowError
from kube.cel.child_main import MEMORY_BYTES, NICENESS
from kube.cel.messages import READY

HUNDRED = f"[{','.join('1' for _ in range(100))}]"
NESTED = f"{HUNDRED}.map(a, {HUNDRED}.map(b, {HUNDRED}.map(c, true))).size() == 100"
REGEX = f"device.driver.matches('{'[a-z]{1,100}' * 800}')"
DOUBLED = f"['{'x' * 9_000}']{'.map(a, a + a)' * 30} == []"
GROWING = f"{HUNDRED}.map(a, {HUNDRED}.map(b, {HUNDRED})) != []"
DEEP = "(" * 5_000 + "true" + ")" * 5_000


def a_device(name: str = "d0", **more: Any) -> dict[str, Any]:
    return {"driver": "moorage.dev", "attributes": {"moorage.dev": {"name": name, **more}}}


def named(name: str) -> str:
    return f"device.attributes['moorage.dev'].name == '{name}'"


THOUSAND = [a_device(f"d{number}") for number in range(1_000)]


@pytest.fixture
async def cel(monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[CelProcess]:
    monkeypatch.setattr(processes, "WAIT_SECONDS", 600.0)
    cel = CelProcess()
    yield cel
    await cel.close()


EARLIER: set[int] = set()
"""Children that other tests of this process have left: neither theirs to end nor to wait for."""


@pytest.fixture(autouse=True)
def earlier() -> None:
    EARLIER.clear()
    EARLIER.update(children())


def children() -> list[int]:
    """Of this process, since the test began."""
    found = Path("/proc/self/task").glob("*/children")
    pids: list[int] = []
    for each in found:
        with suppress(FileNotFoundError, ProcessLookupError):  # A thread that ended has none.
            pids += map(int, each.read_text().split())
    return [pid for pid in pids if pid not in EARLIER]


async def with_turns(asked: Any) -> tuple[Any, int]:
    """What comes of it, and how often others had their turn meanwhile."""
    task, turns = asyncio.ensure_future(asked), 0
    while not task.done():
        turns += 1
        await asyncio.sleep(0)
    return task.exception() or task.result(), turns


async def test_a_child_that_was_started_early_answers_the_first_request(cel: CelProcess) -> None:
    await cel.start()
    (early,) = children()

    assert await cel.matches([named("d0")], [a_device()]) == [True]
    assert (children(), cel.started) == ([early], 1)


async def test_answers_are_in_the_order_of_the_devices(cel: CelProcess) -> None:
    found = await cel.matches(["device.driver == 'moorage.dev'", named("d777")], THOUSAND)

    assert [number for number, answer in enumerate(found) if answer] == [777]
    assert found.count(False) == 999
    assert await cel.matches([named("absent"), "1"], THOUSAND[:1]) == [False]
    assert await cel.matches(["1"], THOUSAND[:1]) == [None]
    assert await cel.matches(["no such language"], THOUSAND[:2]) == [None, None]
    assert await cel.matches(["true"], []) == []
    assert cel.started == 1


@pytest.mark.parametrize(
    ("expression", "answer"),
    [
        ("device.capacity['x'].memory.compareTo(quantity('40Gi')) >= 0", True),
        ("device.capacity['x'].memory.isGreaterThan(quantity('40Gi'))", False),
        ("device.capacity['x'].memory.isLessThan(quantity('40.5Gi'))", True),
        ("device.capacity['x'].memory.sub(quantity('39Gi')) == quantity('1Gi')", True),
        ("quantity('1').add(quantity('500m')).asApproximateFloat() == 1.5", True),
        ("quantity('1500m').isInteger() || quantity('3').asInteger() != 3", False),
        ("isQuantity('3Q') || quantity('0').sign() != 0", False),
        ("quantity('nonsense').sign() == 0", None),
        ("quantity('1500m').asInteger() == 1", None),
        ("device.capacity['x'].memory == '40Gi'", False),
    ],
)
async def test_quantities_are_compared_as_in_kubernetes(
    cel: CelProcess, expression: str, answer: bool | None
) -> None:
    device = {"capacity": {"x": {"memory": 40 * 1024**3 * 1000}}}

    assert await cel.matches([expression], [device]) == [answer]


async def test_a_device_without_the_attribute_does_not_match(cel: CelProcess) -> None:
    """kube-scheduler ends the pod's attempt there, so no device is given either."""
    with_model = a_device(model="H200")
    missing = "device.attributes['moorage.dev'].model == 'H200'"

    assert await cel.matches([missing], [a_device(), with_model]) == [False, True]
    assert await cel.matches(["device.attributes['other.dev'].model == 'x'"], [a_device()]) == [
        False
    ]


async def test_32_selectors_of_1000_devices_are_no_more_than_may_be(cel: CelProcess) -> None:
    selectors = [f"device.driver != 'driver-{number}.example.com'" for number in range(32)]

    assert await cel.matches(selectors, THOUSAND) == [True] * 1_000


@pytest.mark.parametrize(
    ("expressions", "devices"),
    [
        ([NESTED], THOUSAND[:1]),
        ([REGEX], THOUSAND),
        ([f"{NESTED} || {number} == 1" for number in range(32)], THOUSAND),
        ([GROWING], THOUSAND),
    ],
    ids=["nested map", "regular expression", "32 selectors", "thousand devices"],
)
async def test_what_takes_too_long_is_not_evaluated_again_and_holds_up_nobody(
    expressions: Sequence[str], devices: Sequence[Any], cel: CelProcess
) -> None:
    found, turns = await with_turns(cel.matches(expressions, devices))

    assert isinstance(found, TooSlowError)
    assert turns > 100, "the loop goes on while it is evaluated"
    started = cel.started
    with pytest.raises(TooSlowError):
        await cel.matches(expressions, devices)
    assert cel.started == started
    assert await cel.matches([named("d1")], THOUSAND[:2]) == [False, True]


@pytest.mark.parametrize("expression", [DOUBLED, DEEP], ids=["memory", "depth"])
async def test_what_ends_the_process_or_fails_in_it_ends_nothing_else(
    expression: str, cel: CelProcess
) -> None:
    with suppress(TooSlowError):
        assert await cel.matches([expression], THOUSAND[:1]) == [None]

    assert await cel.matches([named("d1")], THOUSAND[:2]) == [False, True]


async def test_a_process_that_somebody_killed_says_nothing_of_what_it_was_asked(
    cel: CelProcess,
) -> None:
    assert await cel.matches(["true"], THOUSAND[:1]) == [True]
    for pid in children():
        os.kill(pid, signal.SIGKILL)

    assert await cel.matches([named("d1")], THOUSAND[:2]) == [False, True]
    assert cel.started == 2


async def test_a_process_that_gets_no_cpu_is_given_up_and_what_it_was_asked_is_tried_again(
    cel: CelProcess, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert await cel.matches(["true"], THOUSAND[:1]) == [True]
    for pid in children():
        os.kill(pid, signal.SIGSTOP)
    monkeypatch.setattr(processes, "WAIT_SECONDS", 0.01)
    with pytest.raises(NotEvaluatedError):
        await cel.matches([named("d1")], THOUSAND[:2])

    monkeypatch.setattr(processes, "WAIT_SECONDS", 600.0)
    assert await cel.matches([named("d1")], THOUSAND[:2]) == [False, True]


async def test_nobody_gets_the_answer_to_what_another_asked_and_gave_up(cel: CelProcess) -> None:
    assert await cel.matches(["true"], THOUSAND[:1]) == [True]
    asked = asyncio.create_task(cel.matches([NESTED], THOUSAND))
    await asyncio.sleep(0.01)
    asked.cancel()
    with suppress(asyncio.CancelledError):
        await asked

    assert await cel.matches([named("d1")], THOUSAND[:2]) == [False, True]


async def test_a_process_that_cannot_be_started_is_no_fault_of_the_expression(
    cel: CelProcess, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    with monkeypatch.context() as patch:
        for executable in (tmp_path / "absent", Path("/bin/false")):
            patch.setattr(sys, "executable", str(executable))
            with pytest.raises(NotEvaluatedError):
                await cel.matches([named("d1")], THOUSAND[:2])

    assert await cel.matches([named("d1")], THOUSAND[:2]) == [False, True]


async def test_the_process_is_held_by_the_kernel_and_inherits_nothing(cel: CelProcess) -> None:
    assert await cel.matches(["true"], THOUSAND[:1]) == [True]
    (pid,) = children()
    proc = Path(f"/proc/{pid}")

    lines = (proc / "limits").read_text().splitlines()
    limits = {line[:25].strip(): line[25:].split() for line in lines}
    assert limits["Max address space"][:2] == [str(MEMORY_BYTES)] * 2
    assert limits["Max core file size"][:2] == ["0", "0"]
    mine = os.getpriority(os.PRIO_PROCESS, 0)
    assert os.getpriority(os.PRIO_PROCESS, pid) == min(19, mine + NICENESS)
    assert (proc / "environ").read_bytes() == b""
    await cel.close()
    assert children() == []


def test_uvloop_which_forgives_no_write_to_an_ended_process_is_told_in_time() -> None:
    async def asked() -> list[bool | None]:
        cel = CelProcess()
        await cel.matches(["true"], THOUSAND[:1])
        for pid in children():
            os.kill(pid, signal.SIGKILL)
        while children():  # noqa: ASYNC110  uvloop has heard of it then.
            await asyncio.sleep(0)
        found = await cel.matches([named("d1")], THOUSAND[:2])
        await cel.close()
        return found

    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        assert runner.run(asked()) == [False, True]


def test_the_process_ends_with_whoever_started_it() -> None:
    command = (sys.executable, "-I", "-m", "kube.cel.child_main")

    done = subprocess.run(command, input=b"", capture_output=True, check=True)

    assert (done.stdout, done.stderr) == (READY, b"")
