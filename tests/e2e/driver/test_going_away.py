"""Devices go away while a claim has them, and come back: of each handler that runs on a node."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from local_cluster.go_toolchain import ensure_built
from local_cluster.programs import DISCOVERY_PEER
from tests.e2e.driver import lives
from tests.e2e.driver.installation import DEBUG_ECHO_FILE, NODES
from tests.e2e.driver.stories import Story


def evicted(story: Story, names: tuple[str, ...]) -> None:
    """Wait until the pod is gone that used these devices, and nothing is left of them."""
    story.until(
        "the pod is evicted", lambda: not story.cluster.list("pods", namespace=story.namespace)
    )
    story.until(
        "its devices are gone", lambda: not any(lives.published(story, name) for name in names)
    )
    story.until(
        "so are their Instances",
        lambda: not any(i["spec"]["configurationName"] in names for i in story.instances()),
    )


def test_a_disk_that_is_back_is_the_same_and_one_that_evicts_its_pods_is_gone(
    story: Story,
) -> None:
    # A disk that is open cannot be removed, as a stick that is mounted can be pulled: it loses
    # its content, and with it what the rule asks for.
    disk = story.plug("a disk to come back")
    details = json.dumps({"udevRules": [story.rule]})
    lives.configure(story, story.name, "udev", details)
    seen = lives.use(story, {story.name: ()}, look="head -n1 $UDEV_DEVNODE")
    assert f"UDEV_DEVNODE=/dev/{disk.name}" in seen
    assert seen[-1] == "a disk to come back"

    lives.go_and_return(
        story, (story.name,), go=disk.detach, come=lambda: disk.attach(story.folder / disk.name)
    )

    disk.detach()
    lives.wait_taints(story, (story.name,), lives.NO_SCHEDULE)
    story.until("node-b, where nobody has it, drops it", lambda: not story.devices("node-b"))
    lives.configure(story, story.name, "udev", details, offlineTaintEffect="NoExecute")
    evicted(story, (story.name,))


def say(story: Story, word: str) -> None:
    """Take the debugEcho devices of all nodes away, or bring them back."""
    for node in NODES:
        story.cluster.node(node).path(DEBUG_ECHO_FILE).write_text(word)


@pytest.fixture
def everything_back(story: Story) -> Iterator[None]:
    """No node is left without its debugEcho devices."""
    yield
    say(story, "ONLINE")


@pytest.mark.usefixtures("everything_back")
def test_devices_in_words_go_and_come_back_on_one_node_and_on_all(story: Story) -> None:
    local, shared = f"{story.name}-local", f"{story.name}-shared"
    selectors = lives.examples("shared-devices.md", {"front door": story.name})
    for name in (local, shared):
        details = json.dumps({"descriptions": [story.name], "shared": name == shared})
        lives.configure(story, name, "debugEcho", details, offlineGracePeriod="1s")
    seen = lives.use(story, dict.fromkeys((local, shared), selectors))
    assert f"DEBUG_ECHO_DESCRIPTION={story.name}" in seen

    lives.go_and_return(
        story,
        (local, shared),
        go=lambda: say(story, "OFFLINE"),
        come=lambda: say(story, "ONLINE"),
    )

    lives.configure(
        story,
        shared,
        "debugEcho",
        json.dumps({"descriptions": [story.name]}),
        offlineGracePeriod="1s",
        offlineTaintEffect="NoExecute",
    )
    say(story, "OFFLINE")
    evicted(story, (local, shared))


@contextmanager
def peer(story: Story) -> Iterator[subprocess.Popen[str]]:
    """A handler in Go, on node-a; each line that it is told is what is plugged from then on."""
    program = ensure_built(DISCOVERY_PEER) / "discovery-peer"
    process = story.cluster.node("node-a").popen(
        [str(program), "local", "/var/lib/akri", story.name],
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        text=True,
    )
    try:
        yield process
    finally:
        process.kill()
        process.communicate()


def tell(process: subprocess.Popen[str], words: str) -> None:
    assert process.stdin is not None
    process.stdin.write(f"{words}\n")
    process.stdin.flush()


def test_a_device_of_a_handler_in_another_language_goes_and_comes_back(story: Story) -> None:
    words = {"SHELF_FOLDER": "PEER_LINE", '"maps"': '"atlas"'}
    with peer(story) as process:
        lives.configure(story, story.name, story.name, "maps atlas")
        selectors = lives.examples("write-your-own-handler.md", words)
        seen = lives.use(story, {story.name: selectors}, look="head -n1 /in; ls -l /dev/in")
        assert "PEER_LINE=atlas" in seen
        assert not any("pciBusID" in line for line in seen)
        assert "NAME=" in seen[-2]
        assert seen[-1].startswith("c")

        lives.go_and_return(
            story,
            (story.name,),
            go=lambda: tell(process, "maps"),
            come=lambda: tell(process, "atlas maps"),
        )
        story.delete("akric", story.name)
