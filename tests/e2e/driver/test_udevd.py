"""What is published of devices beside a real udevd, and without one."""

from __future__ import annotations

import json
import re
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from local_cluster import debian
from tests.e2e.driver.lives import examples
from tests.e2e.driver.stories import Story

RULES = "/usr/lib/udev/rules.d"
START = f"""
mount -t tmpfs none {RULES} && mkdir -p /dev/disk &&
{{ test "$2" || mount -t tmpfs none /dev/disk; }} &&
printf '%s\\n' "$1" > {RULES}/99-moorage.rules &&
exec /usr/lib/systemd/systemd-udevd --resolve-names=never
"""
"""With one rule and no other, and links that nobody else sees, unless they are asked for."""


@contextmanager
def udevd(story: Story, told: str = "", *, links: bool = False) -> Iterator[None]:
    """A udevd that tells of this story's disks; the drivers of both nodes follow it and return.

    Links are seen by nobody else, unless they are asked for.
    """
    serial = f'ENV{{ID_SERIAL}}="{story.name}", TAG+="moorage", SYMLINK+="disk/by-id/{story.name}"'
    rule = f"{story.rule}, " + (told or f'{serial}, ENV{{ID_VENDOR}}="Logitech"')
    node = story.cluster.node("node-a")
    argv = ["unshare", "--mount", "sh", "-c", START, "sh", rule, "links" if links else ""]
    process = node.popen(argv, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        wait_source(story, "udevd")
        yield
    finally:
        process.kill()
        process.wait()
        wait_source(story, "kernel")


def wait_source(story: Story, name: str) -> None:
    def followed() -> bool:
        logs = [driver.logs() for driver in story.drivers.nodes.values()]
        return all(re.findall(r"source=(\w+)", log)[-1:] == [name] for log in logs)

    story.until(f"the drivers listen to {name}", followed)


def configure(story: Story, rule: str, **fields: str | bool) -> None:
    details = json.dumps({"udevRules": [rule], **fields})
    body = {
        "apiVersion": "akri.sh/v0",
        "kind": "Configuration",
        "metadata": {"name": story.name, "namespace": story.namespace},
        "spec": {
            "discoveryHandler": {"name": "udev", "discoveryDetails": details},
            "attributes": {"floor": {"int": 3}, "example.com/owner": {"string": "assembly"}},
        },
    }
    story.cluster.apply(body)


def claim(story: Story, *selectors: str) -> None:
    """Create a claim for one device of this story's class that all selectors hold for."""
    request = {
        "deviceClassName": story.name,
        "selectors": [{"cel": {"expression": expression}} for expression in selectors],
    }
    body = {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceClaim",
        "metadata": {"name": "disk"},
        "spec": {"devices": {"requests": [{"name": "disk", "exactly": request}]}},
    }
    story.cluster.apply(body, namespace=story.namespace)


def published(story: Story) -> dict[str, Any]:
    """The first that is shown of a device, and not what may be added later."""
    return story.until("a device is published", lambda: story.devices("node-a"))[0]


@pytest.fixture(autouse=True, scope="module")
def installed_udevd() -> None:
    debian.ensure_packages(debian.UDEV_PACKAGES)


def test_what_udevd_says_is_there_at_first_sight_and_selects_the_device(story: Story) -> None:
    configure(story, 'SUBSYSTEM=="block", TAG=="moorage"', identity="serial")
    with udevd(story):
        disk = story.plug("hello")
        first = published(story)
        attributes = first["attributes"]
        assert attributes["ID_SERIAL"] == {"string": story.name}
        assert attributes["TAGS"] == {"string": ":moorage:"}
        assert attributes["DEVLINKS"] == {"string": f"/dev/disk/by-id/{story.name}"}
        assert attributes["floor"] == {"int": 3}
        assert attributes["example.com/owner"] == {"string": "assembly"}

        ours = 'device.attributes["moorage.dev"]'
        serial = f'{ours}.?ID_SERIAL.orValue("") == "{story.name}"'
        claim(story, *examples("handlers-udev.md"), serial)
        story.pod(node="node-a")
        story.wait_running()
        assert story.read().splitlines()[-1] == "hello"
        story.delete("pod", "reader")

        story.unplug(disk)
        story.wait_devices(0)
        again = story.plug()
        (back,) = story.wait_devices(1)
        assert back["name"] == first["name"]
        assert back["attributes"]["UDEV_DEVNODE"] == {"string": str(again.path)}
        story.end()
        story.wait_devices(0)


def test_without_udevd_the_kernels_word_is_there(story: Story) -> None:
    configure(story, story.rule)
    disk = story.plug()

    attributes = published(story)["attributes"]

    assert attributes["UDEV_DEVNODE"] == {"string": str(disk.path)}
    assert (attributes["SUBSYSTEM"], attributes["DEVTYPE"]) == (
        {"string": "block"},
        {"string": "disk"},
    )
    assert attributes["floor"] == {"int": 3}
    assert "ID_SERIAL" not in attributes


def test_grouped_config(story: Story) -> None:
    play_grouped_config(story)
    story.wait_devices(0)


def play_grouped_config(story: Story) -> None:
    """Akri's test_udev::test_grouped_config: devices below one another are one Instance."""
    configure(story, f'ENV{{ID_PATH}}=="{story.name}"', groupRecursive=True)
    path = f'ENV{{ID_PATH}}="{story.name}"'
    parts = story.rule.replace("ATTR{", "ATTRS{")
    with udevd(story, f"{path}\n{parts}, {path}"):
        disk = story.plug("x" * 65536)
        subprocess.run(["addpart", str(disk.path), "1", "0", "64"], check=True)
        story.until("both are told of as one", lambda: told_of(story) == 2)

        (instance,) = [i for i in story.instances() if i["spec"]["nodes"] == ["node-a"]]
        properties = instance["spec"]["brokerProperties"]
        assert properties["UDEV_DEVNODE_0"] == str(disk.path)
        assert properties["UDEV_DEVNODE_1"] == f"{disk.path}p1"
        subprocess.run(["delpart", str(disk.path), "1"], check=True)
        story.end()
        story.until("it is gone", lambda: not told_of(story))


def told_of(story: Story) -> int:
    """Of how many device nodes the one Instance of node-a tells."""
    (instance,) = [i for i in story.instances() if i["spec"]["nodes"] == ["node-a"]] or [{}]
    properties = instance.get("spec", {}).get("brokerProperties", {})
    return sum(name.startswith("UDEV_DEVNODE_") for name in properties)
