"""A camera whose password is in a Secret: named, allowed, and rotated while the drivers run."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import Any

from tests.e2e.driver.installation import NODES, ROOT
from tests.e2e.driver.stories import Story
from tests.e2e.driver.test_networks import camera, instance


def write_secret(story: Story, password: str) -> None:
    body = {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {"name": story.name, "namespace": story.namespace},
        "stringData": {"password": password},
    }
    story.cluster.apply(body)


def configuration(story: Story, name: str, handler: str, details: Any) -> dict[str, Any]:
    """One that names the Secret of its own name."""
    reference = {"name": name, "namespace": story.namespace, "key": "password"}
    told = {
        "name": handler,
        "discoveryDetails": json.dumps(details),
        "discoveryProperties": [
            {"name": "username_default", "value": "viewer"},
            {"name": "password_default", "valueFrom": {"secretKeyRef": reference}},
        ],
    }
    return {
        "apiVersion": "akri.sh/v0",
        "kind": "Configuration",
        "metadata": {"name": name, "namespace": story.namespace},
        "spec": {"capacity": 2, "discoveryHandler": told},
    }


def allow(story: Story, body: dict[str, Any]) -> None:
    """What an administrator does: `moorage-driver permissions -f - | kubectl apply -f -`."""
    command = (sys.executable, "-m", "driver", "permissions", "-f", "-")
    printed = subprocess.run(
        command, input=json.dumps(body), capture_output=True, text=True, check=True, cwd=ROOT
    )
    story.cluster.apply(printed.stdout)


def messages(story: Story, name: str) -> dict[str, str]:
    """What the nodes say in a Configuration's status."""
    nodes: list[dict[str, str]] = story.get("akric", name).get("status", {}).get("nodes", [])
    return {entry["name"]: entry["message"] for entry in nodes}


class Logs:
    """What the drivers of both nodes say from now on."""

    def __init__(self, story: Story) -> None:
        self._drivers = story.drivers.nodes.values()
        self._before = [len(driver.logs()) for driver in self._drivers]

    def read(self) -> list[str]:
        return [d.logs()[start:] for d, start in zip(self._drivers, self._before, strict=True)]


def test_a_rotated_password_needs_no_restart(story: Story) -> None:
    forbidden, logs = f"{story.name}-forbidden", Logs(story)
    with camera(story, "viewer", "s3cret-new") as filmed:
        details = {"uuids": {"items": [filmed.uuid]}, "defaultCredentials": "Anyone"}
        body = configuration(story, story.name, "onvif", details)
        write_secret(story, "s3cret-old")
        allow(story, body)
        story.cluster.apply(body)
        story.cluster.apply(configuration(story, forbidden, "debugEcho", {"descriptions": ["x"]}))
        story.until(
            "the camera refuses the old password of both nodes",
            lambda: all("HTTP status 401" in log for log in logs.read()),
        )
        assert not story.instances()
        told_off = story.until(
            "a condition says so", lambda: story.condition(story.name, "DevicesComplete")
        )
        assert "it answers HTTP status 401 to the user and the password" in told_off["message"]
        assert (
            'discoveryProperties "username_default" and "password_default"' in (told_off["message"])
        )

        write_secret(story, "s3cret-new")
        found = story.until("the camera is found", lambda: instance(story, story.name))
        assert found["spec"]["brokerProperties"]["ONVIF_DEVICE_MANUFACTURER"] == "PythonCam"

    told = story.until(
        "both nodes say what they may not read",
        lambda: told if len(told := messages(story, forbidden)) == len(NODES) else None,
    )
    refused = f"The driver may not read Secret {story.namespace}/{forbidden};"
    assert all(message.startswith(refused) for message in told.values())
    assert instance(story, forbidden) is None
    condition = story.until(
        "the condition is there", lambda: story.condition(forbidden, "PropertiesRead")
    )
    assert refused in condition["message"]
    assert not any("s3cret" in said for said in (*logs.read(), json.dumps([found, told_off])))
