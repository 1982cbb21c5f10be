"""Akri's discovery contract, against stubs that were generated from it in another language."""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from driver.devices import Device, DeviceSpec, Mount
from driver.handlers.report_limits import HandlerLimits
from local_cluster.go_toolchain import ensure_built
from local_cluster.programs import DISCOVERY_PEER
from tests.driver.handler_nodes import ANode, a_shelf, running

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="module")
def peer() -> str:
    return str(ensure_built(DISCOVERY_PEER) / "discovery-peer")


@asynccontextmanager
async def process(*argv: str) -> AsyncIterator[asyncio.StreamReader]:
    """A program, and what it prints."""
    started = await asyncio.create_subprocess_exec(*argv, stdout=asyncio.subprocess.PIPE, cwd=ROOT)
    assert started.stdout is not None
    try:
        yield started.stdout
    finally:
        started.kill()
        await started.communicate()


async def told(output: asyncio.StreamReader) -> Any:
    async with asyncio.timeout(30):
        return json.loads(await output.readline())


async def test_a_handler_in_another_language_is_asked_and_heard(tmp_path: Path, peer: str) -> None:
    limits = HandlerLimits(mount_paths=("/etc/os-release", "/usr/lib/os-release"))
    node = ANode(tmp_path, configurations=[a_shelf("b a")], limits=limits)
    node.properties = lambda _: {"secret": b"s", "none": None}
    async with running(node.run()), process(peer, "handler", str(tmp_path), "shelf") as output:
        await node.until_devices("a", "b")
        assert await told(output) == {
            "discoveryDetails": "b a",
            "discoveryProperties": {"secret": {"vec": "cw=="}, "none": {}},
        }
    assert node.heard.shared[0] == Device(
        "a",
        {"PEER_LINE": "a", "resource.kubernetes.io/pciBusID": "0000:65:00.0"},
        (Mount("/in", "/etc/os-release", read_only=True),),
        (DeviceSpec("/dev/in", "/dev/null", "rw"),),
    )


async def test_an_agent_in_another_language_hears_our_handlers(tmp_path: Path, peer: str) -> None:
    ours = (sys.executable, "-m", "driver", "handler", "debugEcho", f"--folder={tmp_path}")
    details = "descriptions: [foo1, foo0]"
    offline = tmp_path / "availability"
    async with (
        process(*ours, f"--debug-echo-file={offline}"),
        process(peer, "agent", str(tmp_path), details) as output,
    ):
        assert await told(output) == {
            "name": "debugEcho",
            "endpoint": f"{tmp_path}/debugEcho.sock",
            "endpointType": "UDS",
            "shared": True,
        }
        found: list[dict[str, Any]] = [
            {
                "id": name,
                "properties": {"DEBUG_ECHO_DESCRIPTION": name},
                "mounts": [],
                "deviceSpecs": [],
            }
            for name in ("foo0", "foo1")
        ]
        assert await told(output) == {"devices": found}
        offline.write_text("OFFLINE")
        assert await told(output) == {"devices": []}
