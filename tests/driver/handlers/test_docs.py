"""The guide to handlers: its code runs, and does what it says."""

from __future__ import annotations

import asyncio
import os
import re
import sys
from pathlib import Path

import pytest
import yaml

from driver.devices import Device, Mount
from driver.discovery.handlers import check_details
from driver.handlers import registration_socket
from driver.handlers.report_limits import HandlerLimits
from tests.driver.builders import a_configuration
from tests.driver.handler_nodes import ANode, running

ROOT = Path(__file__).resolve().parents[3]
GUIDE = (ROOT / "docs" / "write-your-own-handler.md").read_text()
CODE, CONFIGURATION = (
    re.findall(rf"```{language}\n(.*?)```", GUIDE, re.DOTALL)[0] for language in ("python", "yaml")
)


def test_the_guide_keeps_its_word_about_twenty_lines() -> None:
    assert sum(1 for line in CODE.splitlines() if line.strip()) <= 20


async def test_the_code_of_the_guide_finds_devices(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(registration_socket, "LOOK_SECONDS", 0.02)
    handler = yaml.safe_load(CONFIGURATION)["spec"]["discoveryHandler"]
    shelf = tmp_path / "shelf"
    (shelf / "maps").mkdir(parents=True)
    asked = a_configuration("shelf", handler=handler["name"], discovery_details=f"{shelf}\n")
    limits = HandlerLimits(mount_paths=(str(shelf),))
    node = ANode(tmp_path, configurations=[asked], limits=limits)
    program = tmp_path / "handler.py"
    program.write_text(CODE)
    environ = {
        **os.environ,
        "DISCOVERY_HANDLERS_DIRECTORY": str(tmp_path),
        "PYTHONPATH": str(ROOT),
    }
    async with running(node.run()):
        started = await asyncio.create_subprocess_exec(sys.executable, str(program), env=environ)
        try:
            await node.until_devices("maps")
            (shelf / "atlas").mkdir()
            await node.until_devices("atlas", "maps")
        finally:
            started.terminate()
            assert await started.wait() == 0
    mounts = (Mount("/shelf", str(shelf / "maps")),)
    assert node.heard.local[1] == Device("maps", {"SHELF_FOLDER": "maps"}, mounts)
    assert check_details(handler["name"], handler["discoveryDetails"]) == ()
