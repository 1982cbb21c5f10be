"""The benchmark of Filter answers with the plugin's own parts, however small its cluster."""

from __future__ import annotations

import pytest

from bench import filter_handler
from bench.filter_handler import FULL, Size

SMALL = Size(claims=20, queues=5, names=3, calls=10)


@pytest.mark.parametrize(("kind", "queue"), [("admitted", ""), ("refused", FULL)])
def test_it_measures_answers_of_the_kind_that_it_says(kind: str, queue: str) -> None:
    handle = filter_handler.handler(filter_handler.extender(SMALL))
    calls = filter_handler.bodies(SMALL, queue)

    filter_handler.check(handle(calls[0]), kind)
    assert len(filter_handler.timed(handle, calls).wall) == SMALL.calls


def test_it_measures_answers_over_loopback() -> None:
    with filter_handler.over_loopback(SMALL) as call:
        filter_handler.check(call(filter_handler.bodies(SMALL)[0]), "admitted")
