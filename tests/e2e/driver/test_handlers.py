"""Discovery handlers of other processes: late, gone, and back, while the driver comes and goes."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from local_cluster.api import Component
from local_cluster.component_handles import ComponentHandle
from tests.e2e.driver.installation import NAMESPACE, NODES, ROOT
from tests.e2e.driver.stories import Story

GUIDE = ROOT / "docs" / "write-your-own-handler.md"


@pytest.fixture
def shelf(story: Story) -> Iterator[Path]:
    """A folder whose folders are devices of the guide's handler."""
    folder = story.folder / "shelf"
    folder.mkdir()
    story.cluster.apply(
        {
            "apiVersion": "akri.sh/v0",
            "kind": "Configuration",
            "metadata": {"name": story.name, "namespace": story.namespace},
            "spec": {"discoveryHandler": {"name": "shelf", "discoveryDetails": str(folder)}},
        }
    )
    yield folder
    story.delete("akric", story.name)


class HandlerProcess:
    """A handler of its own, on node-a."""

    def __init__(self, story: Story, code: str) -> None:
        self._story = story
        self._handle: ComponentHandle | None = None
        self._program = story.folder / "handler.py"
        self._program.write_text(code)

    def start(self) -> None:
        if self._handle is not None:
            self._handle.start()
            return
        self._handle = self._story.cluster.start_component(
            Component(
                name=f"handler-{self._story.name}",
                argv=(sys.executable, str(self._program)),
                namespace=NAMESPACE,
                service_account="driver-node",
                node="node-a",
                cwd=ROOT,
                env={"PYTHONPATH": str(ROOT)},
            )
        )

    def stop(self) -> None:
        if self._handle is not None:
            self._handle.stop()

    def logs(self) -> str:
        return self._handle.logs() if self._handle else ""


@pytest.fixture
def handler(story: Story) -> Iterator[HandlerProcess]:
    """The guide's."""
    one = HandlerProcess(story, re.findall(r"```python\n(.*?)```", GUIDE.read_text(), re.DOTALL)[0])
    yield one
    one.stop()


def told(story: Story) -> dict[str, str]:
    """What the Configuration's status says of handlers, by node."""
    nodes: list[dict[str, Any]] = story.get("akric", story.name).get("status", {}).get("nodes", [])
    return {entry["name"]: entry["handler"] for entry in nodes}


def conditions(story: Story) -> dict[str, str]:
    """The messages of the Configuration's conditions, by type."""
    found = story.get("akric", story.name).get("status", {}).get("conditions", [])
    return {condition["type"]: condition["message"] for condition in found}


def uids(story: Story) -> dict[str, str]:
    """Properties and UIDs of the Instances."""
    return {
        instance["spec"]["brokerProperties"]["SHELF_FOLDER"]: instance["metadata"]["uid"]
        for instance in story.instances()
    }


def test_a_handler_comes_late_goes_and_comes_back(
    story: Story, handler: HandlerProcess, shelf: Path
) -> None:
    (shelf / "maps").mkdir()
    story.until("both nodes say that there is no handler", lambda: told(story).keys() == {*NODES})
    unknown = 'No discovery handler "shelf" is registered on node-a, node-b.'
    story.until(
        "a condition says so", lambda: conditions(story).get("HandlerRegistered") == unknown
    )
    assert conditions(story)["Accepted"] == f"It is valid. {unknown}"

    said = {"name": "node-z", "handler": "Waiting"}
    patch = json.dumps([{"op": "add", "path": "/status/nodes/-", "value": said}])
    where = ("akric", story.name, "-n", story.namespace, "--subresource=status")
    story.cluster.kubectl("patch", *where, "--type=json", "-p", patch)
    story.until("a node that is no more is forgotten", lambda: "node-z" not in told(story))

    handler.start()
    story.wait_devices(1)
    before = story.until("its Instance is there", lambda: uids(story))
    assert list(before) == ["maps"]
    story.until("node-a is well", lambda: told(story) == {"node-b": "Waiting"})

    handler.stop()
    story.until("node-a has lost it", lambda: told(story).get("node-a") == "Offline")
    assert uids(story) == before
    story.wait_devices(1)

    story.drivers.nodes["node-a"].restart()
    handler.start()
    (shelf / "atlas").mkdir()
    story.wait_devices(2)
    story.until("node-a is well", lambda: told(story) == {"node-b": "Waiting"})
    assert uids(story)["maps"] == before["maps"]


def on_hold(story: Story) -> list[int]:
    """How many handlers were on hold at each start of node-a's driver that recalled any."""
    said = story.drivers.nodes["node-a"].logs()
    return [int(n) for n in re.findall(r"handlers recalled count=\d+ on_hold=(\d+)", said)]


def recalled(story: Story, times: int) -> bool:
    return len(on_hold(story)) >= times


def test_a_handler_that_the_driver_did_not_survive_often_loses_no_device(
    story: Story, handler: HandlerProcess, shelf: Path
) -> None:
    """It is on hold after the third time, and asked as soon as it registers again."""
    (shelf / "maps").mkdir()
    handler.start()
    before = story.until("its Instance is there", lambda: uids(story))
    runs = len(on_hold(story))
    for run in range(runs, runs + 4):
        story.drivers.nodes["node-a"].kill()
        story.until("the table is recalled", partial(recalled, story, run + 1))
    assert on_hold(story)[-1] > 0

    (shelf / "atlas").mkdir()
    story.wait_devices(2)
    story.until("node-a is well", lambda: told(story) == {"node-b": "Waiting"})
    assert uids(story)["maps"] == before["maps"]


HOSTILE = """
import asyncio, sys
from pathlib import Path
from driver.handlers.sdk import Device, DeviceSpec, Handler, Mount, Place, Request
from driver.handlers.sdk import place_from, serve

async def discover(request: Request):
    shelf = Path(request.details.strip())
    link, specs = shelf / "link", DeviceSpec("/x", "/dev/../etc/shadow")
    if not link.is_symlink():
        link.symlink_to("/")
    yield [
        Device("root", mounts=(Mount("/host", "/", read_only=False),)),
        Device("link", mounts=(Mount("/host", str(link)),)),
        Device("walk", device_specs=(specs,)),
        Device("good", {"SHELF_FOLDER": "good", "NUL": "a\\0b"}),
    ]
    while not (shelf / "flood").exists():
        await asyncio.sleep(0.1)
    yield [Device(str(n), {"SHELF_FOLDER": str(n)}) for n in range(50_000)]
    await asyncio.Event().wait()

async def main():
    place = place_from({})
    await asyncio.gather(*(serve(Handler(name, discover), place) for name in ("shelf", "onvif")))

asyncio.run(main())
"""


def test_a_handler_gets_no_more_of_the_node_than_settings_allow(story: Story, shelf: Path) -> None:
    """What would make it root costs it the device, and a flood costs nobody anything."""
    hostile = HandlerProcess(story, HOSTILE)
    hostile.start()
    try:
        before = story.until("the good device is there", lambda: uids(story))
        assert list(before) == ["good"]
        said = story.until("the status says why not the others", lambda: message(story, "root"))
        assert "And 1 more." in said
        assert 'Device "root" is left out: mount "/" is not in --handler-mount-paths.' in said
        assert "leads to what is not in --handler-mount-paths" in said
        assert 'device node "/dev/../etc/shadow" is not in --handler-device-paths' in said
        told_off = story.until("it is no onvif handler", lambda: "onvif" in hostile.logs())
        assert told_off
        assert "PERMISSION_DENIED" in hostile.logs()

        (shelf / "flood").touch()
        said = story.until("the flood is refused", lambda: message(story, "5000"))
        assert "It reports more than 5000 devices (--handler-most-devices)" in said
        assert uids(story) == before
    finally:
        hostile.stop()


def message(story: Story, part: str) -> str:
    """What node-a says of the Configuration, once that is a part of it."""
    nodes = story.get("akric", story.name).get("status", {}).get("nodes", [])
    said = [entry.get("message", "") for entry in nodes if entry["name"] == "node-a"]
    return "".join(one for one in said if part in one)
