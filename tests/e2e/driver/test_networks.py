"""A camera and a machine that others wrote, found on the network by both nodes."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from driver.discovery.opcua.servers import SERVER_TIMEOUT
from local_cluster.layout import layout_of
from tests.driver.discovery.onvif.cameras import CameraProcess
from tests.driver.discovery.opcua.machines import start
from tests.e2e.driver import lives
from tests.e2e.driver.installation import NODES
from tests.e2e.driver.stories import Story


def beside(story: Story) -> tuple[str, ...]:
    """Runs a command in the network of the nodes."""
    namespace = layout_of(story.cluster.work_dir).network_namespace
    return ("nsenter", f"--net=/run/netns/{namespace}")


@contextmanager
def camera(story: Story, *login: str) -> Iterator[CameraProcess]:
    """A camera, with user and password if it wants any."""
    address = ("192.0.2.1/24", "192.0.2.2")
    process = CameraProcess("anothers", *address, *login, beside=beside(story))
    try:
        yield process
    finally:
        process.stop()


def instance(story: Story, name: str) -> dict[str, Any] | None:
    """The one Instance of a Configuration, as soon as both nodes see it."""
    found = [i for i in story.instances() if i["spec"]["configurationName"] == name]
    seen = len(found) == 1 and sorted(found[0]["spec"].get("nodes", ())) == sorted(NODES)
    return found[0] if seen else None


class Press:
    """An OPC UA server that can be turned off."""

    def __init__(self, story: Story) -> None:
        self._beside = beside(story)
        self.turn_on()

    def turn_on(self) -> None:
        self._process = start(8, beside=self._beside)

    def turn_off(self) -> None:
        self._process.kill()
        self._process.communicate()


@contextmanager
def a_press(story: Story) -> Iterator[Press]:
    one = Press(story)
    try:
        yield one
    finally:
        one.turn_off()


def test_a_camera_and_a_machine_go_and_come_back_while_a_pod_has_them(story: Story) -> None:
    names = (story.name, f"{story.name}-press")
    with camera(story) as filmed, a_press(story) as press:
        story.cluster.apply(configurations(story, names, filmed.uuid))
        seen = lives.use(story, dict(zip(names, selectors(), strict=True)))
        assert f"ONVIF_DEVICE_UUID={filmed.uuid}" in seen
        assert "ONVIF_DEVICE_MANUFACTURER=PythonCam" in seen
        assert any(line.startswith("ONVIF_DEVICE_SERVICE_URL=http://192.0.2.2:") for line in seen)
        assert "OPCUA_APPLICATION_NAME=Press 8" in seen
        assert "OPCUA_DISCOVERY_URL=opc.tcp://127.0.0.1:4861" in seen

        def go() -> None:
            filmed.pull()
            press.turn_off()

        def come() -> None:
            filmed.put_back()
            press.turn_on()

        lives.go_and_return(story, names, go=go, come=come)


NEVER = "opc.tcp://127.0.0.1:4863/"
TAKES_CALLS = """
import socket, sys
server, calls = socket.create_server(("127.0.0.1", 4863)), []
with open(sys.argv[1], "w", buffering=1) as asked:
    print("serving", file=asked)
    while True:
        calls.append(server.accept())
        print("asked", file=asked)
"""


@contextmanager
def a_server_that_never_answers(story: Story) -> Iterator[Path]:
    """Yields a file with a line for each call that it took."""
    asked = story.folder / "asked"
    asked.touch()
    argv = [*beside(story), sys.executable, "-c", TAKES_CALLS, str(asked)]
    process = subprocess.Popen(argv)
    try:
        story.until("it takes calls", lambda: asked.stat().st_size > 0)
        yield asked
    finally:
        process.kill()
        process.wait()


def test_a_server_that_never_answers_delays_no_other(story: Story) -> None:
    """Another one comes while its answer is waited for, in each turn."""
    with a_server_that_never_answers(story) as asked, a_press(story) as press:
        press.turn_off()
        method = {"standard": {"discoveryUrls": [NEVER, "opc.tcp://127.0.0.1:4861/"]}}
        details = json.dumps({"opcuaDiscoveryMethod": method})
        story.cluster.apply(lives.configuration(story, story.name, "opcua", details))
        story.until("a turn is over", lambda: all_told(story, "opc.tcp://127.0.0.1"))
        press.turn_on()
        before = asked.stat().st_size
        story.until("the next turn begins", lambda: asked.stat().st_size > before)
        since = time.monotonic()
        story.until("the other is found", lambda: story.instances())
        assert time.monotonic() - since < SERVER_TIMEOUT.total_seconds()


def test_a_stranger_on_the_network_has_nobody_asked_and_nothing_taken(story: Story) -> None:
    """He tells of the kubelet's port and of a closed one, and says that he is the camera."""
    urls = ["http://127.0.0.1:10250/", "http://127.0.0.1:1/"]
    place = ("198.51.100.1/24", "198.51.100.2")
    with camera(story) as filmed:
        details = json.dumps({"identity": "uuid", "uuids": {"items": [filmed.uuid]}})
        story.cluster.apply(lives.configuration(story, story.name, "onvif", details))
        before = story.until("the camera is found", lambda: instance(story, story.name))
        process = CameraProcess("forger", *place, filmed.uuid, " ".join(urls), beside=beside(story))
        try:
            told = story.until("both nodes tell of him", lambda: all_told(story, filmed.uuid))
        finally:
            process.stop()
        for message in told:
            open_port, closed_port = (message.partition(f'"{url}", ')[2] for url in urls)
            assert open_port.partition(".")[0] == closed_port.partition(".")[0] != ""
            assert not any(word in message for word in ("refused", "HTTP status", "no answer"))
        assert instance(story, story.name) == before


def all_told(story: Story, uuid: str) -> list[str] | None:
    """What both nodes say of the Configuration, once they tell of one who bears the UUID."""
    entries = story.get("akric", story.name).get("status", {}).get("nodes", ())
    told = [entry["message"] for entry in entries if uuid in entry.get("message", "")]
    return told if len(told) == len(NODES) else None


def configurations(story: Story, names: tuple[str, str], uuid: str) -> list[dict[str, Any]]:
    """Of one camera and of one machine, on the third floor."""
    method = {"standard": {"discoveryUrls": ["opc.tcp://127.0.0.1:4861/"]}}
    told = (("onvif", {"uuids": {"items": [uuid]}}), ("opcua", {"opcuaDiscoveryMethod": method}))
    floor = {"capacity": 2, "attributes": {"floor": {"int": 3}}}
    return [
        lives.configuration(story, name, handler, json.dumps(details), **floor)
        for name, (handler, details) in zip(names, told, strict=True)
    ]


def selectors() -> tuple[lives.Selectors, lives.Selectors]:
    """What the pages select by, said of this camera and this machine."""
    of_cameras = {'"Acme"': '"PythonCam"', '"T" in': '"Streaming" in'}
    of_machines = {"Press 7": "Press 8", "urn:acme:": "urn:github.com:"}
    return (
        lives.examples("handlers-onvif.md", of_cameras),
        lives.examples("handlers-opcua.md", of_machines),
    )
