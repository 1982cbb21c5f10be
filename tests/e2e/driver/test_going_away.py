"""Devices go away while a claim has them, and come back: of the handlers that need no network."""

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


def test_a_disk_that_is_back_is_the_same_and_one_that_evicts_its_pods_is_gone(
    story: Story,
) -> None:
    # A disk that is open cannot be removed, as a stick that is mounted can be pulled: it loses
    # its content, and with it what the rule asks for.
    disk = story.plug("a disk to come back")
    names, told = (story.name,), (story.name, "udev", json.dumps({"udevRules": [story.rule]}))
    story.cluster.apply(lives.configuration(story, *told))
    seen = lives.use(story, {story.name: ()}, look="head -n1 $UDEV_DEVNODE")
    assert f"UDEV_DEVNODE=/dev/{disk.name}" in seen
    assert seen[-1] == "a disk to come back"

    lives.go_and_return(
        story, names, go=disk.detach, come=lambda: disk.attach(story.folder / disk.name)
    )

    disk.detach()
    lives.wait_away(story, names, lives.NO_SCHEDULE)
    story.until("node-b, where nobody has it, drops it", lambda: not story.devices("node-b"))
    story.cluster.apply(lives.configuration(story, *told, offlineTaintEffect="NoExecute"))
    lives.wait_evicted(story, names)


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
    names = (f"{story.name}-local", f"{story.name}-shared")
    details = [json.dumps({"descriptions": [story.name], "shared": s}) for s in (False, True)]
    local, shared = (
        lives.configuration(story, name, "debugEcho", text, offlineGracePeriod="1s")
        for name, text in zip(names, details, strict=True)
    )
    story.cluster.apply([local, shared])
    selectors = lives.examples("shared-devices.md", {"front door": story.name})
    seen = lives.use(story, dict.fromkeys(names, selectors))
    assert f"DEBUG_ECHO_DESCRIPTION={story.name}" in seen

    lives.go_and_return(
        story, names, go=lambda: say(story, "OFFLINE"), come=lambda: say(story, "ONLINE")
    )

    shared["spec"]["offlineTaintEffect"] = "NoExecute"
    story.cluster.apply(shared)
    say(story, "OFFLINE")
    lives.wait_evicted(story, names[:1])


DEGRADED = ("moorage.dev/degraded", "NoSchedule")


@pytest.mark.usefixtures("everything_back")
def test_a_degraded_device_stays_with_who_has_it_and_nobody_new_gets_it(story: Story) -> None:
    names = (f"{story.name}-local", f"{story.name}-shared")
    details = [json.dumps({"descriptions": [story.name], "shared": s}) for s in (False, True)]
    told = [
        lives.configuration(story, name, "debugEcho", text, capacity=2)
        for name, text in zip(names, details, strict=True)
    ]
    story.cluster.apply(told)
    lives.use(story, dict.fromkeys(names, ()))
    before = lives.Look(story, names)

    say(story, "DEGRADED")
    lives.wait_tainted(story, names, DEGRADED)
    ill = lives.Look(story, names)
    healths = [device["attributes"]["health"] for device in ill.devices.values()]
    assert healths == [{"string": "degraded"}] * 2
    assert (ill.uses, ill.containers) == (before.uses, before.containers)
    story.until("its pod's status says so", lambda: _healths(story) == {"Unhealthy"})

    newcomer = {**lives.claim(names[1], ()), "metadata": {"name": "newcomer"}}
    story.cluster.apply([newcomer], namespace=story.namespace)
    story.pod("waiting", claim="newcomer", container={"command": ["sh", "-c", "exec sleep 1000"]})
    story.until("the newcomer's pod is refused", lambda: _unschedulable(story, "waiting"))

    say(story, "ONLINE")
    lives.wait_tainted(story, names)
    story.wait_running("waiting")
    after = lives.Look(story, names)
    assert (after.uses, after.containers) == (before.uses, before.containers)
    assert all("health" not in device["attributes"] for device in after.devices.values())
    story.until("its pod's status says so", lambda: _healths(story) == {"Healthy"})


def _healths(story: Story) -> set[str]:
    (status,) = story.get("pod", "reader")["status"]["containerStatuses"]
    found = status.get("allocatedResourcesStatus", ())
    return {one["health"] for resource in found for one in resource["resources"]}


def _unschedulable(story: Story, pod: str) -> bool:
    conditions = story.get("pod", pod).get("status", {}).get("conditions", ())
    return any(condition.get("reason") == "Unschedulable" for condition in conditions)


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
    selectors = lives.examples("write-your-own-handler.md", words)
    with peer(story) as process:
        story.cluster.apply(lives.configuration(story, story.name, story.name, "maps atlas"))
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
