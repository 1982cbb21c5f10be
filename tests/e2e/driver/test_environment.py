"""What handlers and users say of devices, and what of it containers find in their environment."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import pytest

from tests.e2e.driver import installation, lives
from tests.e2e.driver.stories import Story
from tests.e2e.driver.test_handlers import HandlerProcess, message

NETWORK = "/var/lib/akri/network"
FLAGS = (f"--network-handlers-folder={NETWORK}", "--embedded-handlers=debugEcho,onvif,udev")
SERVER = "opc.tcp://127.0.0.1:4864/"
TABLE = "/var/lib/kubelet/plugins/moorage.dev/handlers.json"
DENIED = ("HTTPS_PROXY", "LD_PRELOAD", "MOORAGE_X", "NVIDIA_VISIBLE_DEVICES")

HOSTILE = f"""
import asyncio
from pathlib import Path
from driver.handlers.sdk import Device, Handler, Place, Request, serve

FORGED = dict.fromkeys({DENIED!r}, "forged")

async def cupboards(request: Request):
    yield [Device("atlas", {{**FORGED, "CUPBOARD_FOLDER": "atlas"}})]
    await asyncio.Event().wait()

async def presses(request: Request):
    yield [Device("press", {{**FORGED, "LENS": "forged", "OPCUA_APPLICATION_NAME": "Press 8"}})]
    await asyncio.Event().wait()

async def main():
    await asyncio.gather(
        serve(Handler("cupboard", cupboards), Place()),
        serve(Handler("opcua", presses), Place(Path("{NETWORK}"))),
    )

asyncio.run(main())
"""


@contextmanager
def driver(story: Story, *flags: str) -> Iterator[None]:
    """Instead of node-a's driver one with other flags; the handlers that it knew are forgotten."""
    usual, other = story.drivers.nodes["node-a"], installation.node_driver("node-a", *flags)
    usual.stop()
    handle = installation.start(story.cluster, replace(other, name="driver-node-environment"))
    try:
        handle.wait_ready()
        yield
    finally:
        handle.stop()
        story.cluster.node("node-a").path(TABLE).unlink(missing_ok=True)
        usual.start()
        usual.wait_ready()


@pytest.fixture
def handlers(story: Story) -> Iterator[None]:
    """One in the ordinary folder, of a name of its own, and one without privileges."""
    both = HandlerProcess(story, HOSTILE)
    both.start()
    yield
    both.stop()


def configurations(story: Story) -> list[dict[str, Any]]:
    """Of the two handlers; of the second one says more itself."""
    said = {"brokerProperties": {"FLOOR": "2", "https_proxy": "forged"}}
    details = json.dumps({"opcuaDiscoveryMethod": {"standard": {"discoveryUrls": [SERVER]}}})
    return [
        lives.configuration(story, story.name, "cupboard", ""),
        lives.configuration(story, f"{story.name}-press", "opcua", details, **said),
    ]


@pytest.mark.usefixtures("handlers")
def test_a_container_finds_what_is_allowed_and_nothing_else(story: Story) -> None:
    press = f"{story.name}-press"
    with driver(story, *FLAGS):
        story.cluster.apply(configurations(story))

        seen = lives.use(story, {story.name: (), press: ()})

        assert {"CUPBOARD_FOLDER=atlas", "OPCUA_APPLICATION_NAME=Press 8", "FLOOR=2"} <= {*seen}
        assert (
            len([line for line in seen if line.startswith(("CUPBOARD_", "OPCUA_", "FLOOR"))]) == 6
        )
        assert not [line for line in seen if "forged" in line]
        said = story.until("the status says so", lambda: message(story, "LD_PRELOAD"))
        assert "variables HTTPS_PROXY are denied: they say which proxy is asked." in said
        assert "variables LD_* are denied: they say what the loader" in said
        assert said.endswith("The same is true of 1 more.")
        (device,) = story.wait_devices(1)
        assert device["attributes"]["LD_PRELOAD"] == {"string": "forged"}
        said = story.until("so it does of the other", lambda: of_press(story))
        assert "its handler runs without privileges (--network-handler-prefixes" in said
        assert said.endswith("The same is true of 3 more.")
        story.delete("akric", press)


def of_press(story: Story) -> str:
    return message(replace(story, name=f"{story.name}-press"), "No container gets property")


@pytest.mark.usefixtures("handlers")
def test_what_was_given_before_is_taken_from_containers_that_start_later(story: Story) -> None:
    """As after an update from a driver that denied nothing."""
    story.cluster.apply(lives.configuration(story, story.name, "cupboard", ""))
    with driver(story, f"--allowed-environment=LD_PRELOAD,{DENIED[0]}"):
        seen = lives.use(story, {story.name: ()})
        assert {"LD_PRELOAD=forged", "HTTPS_PROXY=forged"} <= {*seen}
        (file,) = story.cdi_files(story.claim_uid(story.name), "node-a")
        assert "LD_PRELOAD=forged" in file.read_text()

    story.until("it is renewed", lambda: "LD_PRELOAD=forged" not in file.read_text())
    assert "CUPBOARD_FOLDER=atlas" in file.read_text()
    story.pod(
        "later",
        node="node-a",
        container={
            "command": ["sh", "-c", "env; exec sleep 100000"],
            "resources": {"claims": [{"name": "disk"}]},
        },
        claim=story.name,
    )
    story.wait_running("later")
    later = story.read("later").splitlines()
    assert "CUPBOARD_FOLDER=atlas" in later
    assert not [line for line in later if "forged" in line]
