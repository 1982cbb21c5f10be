"""Fixtures of the discovery handlers' tests."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.driver.discovery.udev.loops import Loops, loops


@pytest.fixture(name="loops")
def _loops() -> Iterator[Loops]:
    with loops() as made:
        yield made
