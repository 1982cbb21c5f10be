"""Discovery handlers of other processes: late, gone, and back, while the driver comes and goes."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterator
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


class GuideHandler:
    """The guide's handler, on node-a."""

    def __init__(self, story: Story) -> None:
        self._story = story
        self._handle: ComponentHandle | None = None
        self._program = story.folder / "handler.py"
        code = re.findall(r"```python\n(.*?)```", GUIDE.read_text(), re.DOTALL)[0]
        self._program.write_text(code)

    def start(self) -> None:
        if self._handle is not None:
            self._handle.start()
            return
        self._handle = self._story.cluster.start_component(
            Component(
                name="handler-shelf",
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


@pytest.fixture
def handler(story: Story) -> Iterator[GuideHandler]:
    one = GuideHandler(story)
    yield one
    one.stop()


def told(story: Story) -> dict[str, str]:
    """What the Configuration's status says of handlers, by node."""
    nodes: list[dict[str, Any]] = story.get("akric", story.name).get("status", {}).get("nodes", [])
    return {entry["name"]: entry["handler"] for entry in nodes}


def uids(story: Story) -> dict[str, str]:
    """Properties and UIDs of the Instances."""
    return {
        instance["spec"]["brokerProperties"]["SHELF_FOLDER"]: instance["metadata"]["uid"]
        for instance in story.instances()
    }


def test_a_handler_comes_late_goes_and_comes_back(
    story: Story, handler: GuideHandler, shelf: Path
) -> None:
    (shelf / "maps").mkdir()
    story.until("both nodes say that there is no handler", lambda: told(story).keys() == {*NODES})

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
