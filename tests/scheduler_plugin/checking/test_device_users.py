"""Who uses devices of Moorage's, before it is uninstalled."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from scheduler_plugin import in_use_main
from scheduler_plugin.arguments import parse_settings
from scheduler_plugin.checking.device_users import device_users
from scheduler_plugin.in_use_main import run_in_use
from scheduler_plugin.settings import InUseSettings


def claim(name: str, *pods: str, driver: str = "moorage.dev") -> Any:
    devices = {"results": [{"driver": driver, "pool": "p", "device": "d", "request": "r"}]}
    reserved = [{"resource": "pods", "name": pod, "uid": pod} for pod in pods]
    return {
        "metadata": {"namespace": "default", "name": name},
        "status": {"allocation": {"devices": devices}, "reservedFor": reserved},
    }


def instance(**usage: str) -> Any:
    return {
        "metadata": {"namespace": "lab", "name": "camera-317a9c"},
        "spec": {"deviceUsage": usage},
    }


def test_pods_of_claims_and_nodes_of_slots_are_named() -> None:
    claims = (claim("door", "first", "second"), claim("window"), claim("gpu", "x", driver="gpu"))
    instances = (instance(a="node-a", b="", c="C:camera-0:node-b", d="node-a"),)

    assert device_users(claims, instances) == (
        "ResourceClaim default/door: Pods first, second",
        "Instance lab/camera-317a9c: 3 slots, of nodes node-a, node-b",
    )


def test_what_was_never_allocated_is_used_by_no_pod() -> None:
    bare = {"metadata": {"namespace": "default", "name": "door"}}

    assert device_users((bare, {**bare, "status": {}}), ({**bare, "spec": {}},)) == ()


@pytest.fixture
def looks(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, ...]]:
    """Who uses devices at each look; the last of them stays."""
    found: list[tuple[str, ...]] = []

    @asynccontextmanager
    async def connect(*_: Any, **__: Any) -> AsyncIterator[None]:
        yield

    async def users(_: Any) -> tuple[str, ...]:
        return found.pop(0) if len(found) > 1 else found[0]

    monkeypatch.setattr(in_use_main, "connect", connect)
    monkeypatch.setattr(in_use_main, "users_in", users)
    monkeypatch.setattr(in_use_main, "AGAIN_SECONDS", 0.01)
    monkeypatch.setattr(in_use_main, "SETTLE_SECONDS", 0.05)
    return found


def given(*words: str) -> InUseSettings:
    settings = parse_settings(["in-use", *words], {})
    assert isinstance(settings, InUseSettings)
    return settings


async def test_who_uses_devices_is_said_with_what_to_do(
    looks: list[tuple[str, ...]], capsys: pytest.CaptureFixture[str]
) -> None:
    looks.append(("ResourceClaim default/door: Pod first",))

    assert await run_in_use(given("--remedy=Delete these pods."))

    assert capsys.readouterr().out == (
        "Pods use devices of Moorage's. Without its driver a kubelet does not end them.\n"
        "  ResourceClaim default/door: Pod first\n"
        "Delete these pods.\n"
    )


async def test_a_reservation_that_ends_in_a_moment_is_none(
    looks: list[tuple[str, ...]], capsys: pytest.CaptureFixture[str]
) -> None:
    """The claim of a pod that was deleted is let go by a controller, a little later."""
    looks += [("ResourceClaim default/door: Pod first",), ()]

    assert not await run_in_use(given())

    assert capsys.readouterr().out == "No pod uses a device of Moorage's.\n"
