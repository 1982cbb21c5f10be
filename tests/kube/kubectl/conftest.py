"""A fake kubectl before a fake API server."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator, Coroutine
from pathlib import Path
from typing import Any, TypeVar

import pytest

from kube.kubectl_client import Choice, KubectlClient, finished, started
from tests.fakes.fake_kubectl import fake_kubectl
from tests.fakes.scripted_apiserver import FakeScript, scripted

T = TypeVar("T")


@pytest.fixture
def on_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """PATH has this kubectl."""
    path = fake_kubectl(tmp_path)
    monkeypatch.setenv("PATH", f"{path}{os.pathsep}{os.defpath}")
    monkeypatch.delenv("KUBECONFIG", raising=False)
    return path


@pytest.fixture
async def fake(tmp_path: Path) -> AsyncIterator[FakeScript]:
    async with scripted(tmp_path) as server:
        yield server


@pytest.fixture
async def client(on_path: Path, fake: FakeScript) -> AsyncIterator[KubectlClient]:
    choice = Choice(fake.kubeconfig)
    with started(choice) as kubectl:
        assert kubectl
        assert await asyncio.to_thread(kubectl.listens)
        yield KubectlClient(kubectl, choice)


async def asked(coroutine: Coroutine[Any, Any, T]) -> T:
    """What comes of it, while the loop of this test serves the API."""
    return await asyncio.to_thread(finished, coroutine)
