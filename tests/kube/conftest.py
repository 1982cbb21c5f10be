"""A fake API server, and a client of it."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from kube.calls.api import ApiClient, connect
from tests.kube.fake_apiserver import FakeApiServer, fake_apiserver


@pytest.fixture
async def fake(tmp_path: Path) -> AsyncIterator[FakeApiServer]:
    async with fake_apiserver(tmp_path) as server:
        yield server


@pytest.fixture
async def client(fake: FakeApiServer) -> AsyncIterator[ApiClient]:
    async with connect(fake.kubeconfig) as connected:
        yield connected
