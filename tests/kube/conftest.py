"""A fake API server, and a client of it."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from kube.calls.api import ApiClient, connect
from tests.fakes.scripted_apiserver import FakeScript, scripted


@pytest.fixture
async def fake(tmp_path: Path) -> AsyncIterator[FakeScript]:
    async with scripted(tmp_path) as server:
        yield server


@pytest.fixture
async def client(fake: FakeScript) -> AsyncIterator[ApiClient]:
    async with connect(fake.kubeconfig) as connected:
        yield connected
