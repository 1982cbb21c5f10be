"""How often a refused pod is looked at before kube-scheduler is told."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from scheduler_plugin import second_looks
from scheduler_plugin.second_looks import SecondLooks

REFUSED, PASSED = "refused", "passed"


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """Five looks at a pod, seven saved, and none is won back by waiting."""
    for name, value in {"STEP": 0.001, "LONGEST": 0.005, "SAVED": 0.0075}.items():
        monkeypatch.setattr(second_looks, f"{name}_SECONDS", value)
    monkeypatch.setattr(second_looks, "SHARE", 0.0)


async def looked(looks: SecondLooks, *answers: str) -> tuple[str, int]:
    """The last answer, and how often it was asked for again; the last one is given for ever."""
    asked = 0

    def ask() -> str:
        nonlocal asked
        asked += 1
        return next(coming)

    def forever() -> Iterator[str]:
        yield from answers[1:]
        while True:
            yield answers[-1]

    coming = forever()
    return await looks.until(lambda answer: answer != REFUSED, answers[0], ask), asked


async def test_what_is_settled_is_not_asked_again() -> None:
    assert await looked(SecondLooks(), PASSED) == (PASSED, 0)


async def test_a_refusal_that_was_out_of_date_is_none() -> None:
    assert await looked(SecondLooks(), REFUSED, REFUSED, PASSED) == (PASSED, 2)


async def test_a_refusal_that_stays_is_told() -> None:
    assert await looked(SecondLooks(), REFUSED) == (REFUSED, 5)


async def test_many_refusals_are_told_at_once() -> None:
    looks = SecondLooks()

    assert [await looked(looks, REFUSED) for _ in range(3)] == [
        (REFUSED, 5),
        (REFUSED, 2),
        (REFUSED, 0),
    ]


async def test_a_share_of_the_time_is_for_looking(monkeypatch: pytest.MonkeyPatch) -> None:
    looks = SecondLooks()
    for _ in range(2):
        await looked(looks, REFUSED)
    monkeypatch.setattr(second_looks, "SHARE", 1000.0)

    assert await looked(looks, REFUSED) == (REFUSED, 5)
