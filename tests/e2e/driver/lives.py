"""What becomes of devices, told of every handler in the same way: used, gone, and back."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any

import yaml

from tests.e2e.driver.installation import ROOT
from tests.e2e.driver.stories import Story

OFFLINE = "moorage.dev/offline"
NO_SCHEDULE, NO_EXECUTE = (OFFLINE, "NoSchedule"), (OFFLINE, "NoExecute")

Selectors = tuple[str, ...]
"""CEL expressions, all of which must hold for a device."""


def examples(page: str, words: Mapping[str, str] | None = None) -> Selectors:
    """The CEL expressions that a page of the documentation shows.

    Args:
        page: In docs/.
        words: What stands for what there is here, by what the page says.
    """
    text = (ROOT / "docs" / page).read_text()
    blocks = re.findall(r"```yaml\n(.*?)```", text, re.DOTALL)
    found = [one for block in blocks for one in _expressions(list(yaml.safe_load_all(block)))]
    assert found, f"{page} has no example"
    for said, meant in (words or {}).items():
        assert said in "".join(found)
        found = [one.replace(said, meant) for one in found]
    return tuple(found)


def _expressions(part: Any) -> list[str]:
    if isinstance(part, dict):
        here = [part["cel"]["expression"]] if "cel" in part else []
        return here + [one for value in part.values() for one in _expressions(value)]
    if isinstance(part, list):
        return [one for value in part for one in _expressions(value)]
    return []


def configure(story: Story, name: str, handler: str, details: str, **spec: Any) -> None:
    """Apply a Configuration of any handler."""
    told = {"name": handler, "discoveryDetails": details}
    body = {
        "apiVersion": "akri.sh/v0",
        "kind": "Configuration",
        "metadata": {"name": name, "namespace": story.namespace},
        "spec": {"discoveryHandler": told, **spec},
    }
    story.cluster.apply(body)


def use(story: Story, devices: Mapping[str, Selectors], *, look: str = "") -> list[str]:
    """Claim a device of each Configuration for one pod, and give what its container sees.

    Args:
        story: The claims are named after the Configurations, the pod is `reader`.
        devices: What each device is selected by, by the Configuration's name.
        look: A command of the shell; what it prints comes after the environment.
    """
    for name, selectors in devices.items():
        cel = [{"cel": {"expression": expression}} for expression in selectors]
        request = {"name": "one", "exactly": {"deviceClassName": name, "selectors": cel}}
        body = {
            "apiVersion": "resource.k8s.io/v1",
            "kind": "ResourceClaim",
            "metadata": {"name": name},
            "spec": {"devices": {"requests": [request]}},
        }
        story.cluster.apply(body, namespace=story.namespace)
    script = f"env | sort; {look or ':'}; exec sleep 100000"
    story.pod(
        node="node-a",
        container={
            "command": ["sh", "-c", script],
            "resources": {"claims": [{"name": name} for name in devices]},
        },
        spec={"resourceClaims": [{"name": name, "resourceClaimName": name} for name in devices]},
    )
    story.wait_running()
    return story.read().splitlines()


def go_and_return(
    story: Story, names: tuple[str, ...], *, go: Callable[[], None], come: Callable[[], None]
) -> None:
    """Let the devices go away and come back that the pod `reader` has, and see that it has them."""
    before = {name: held(story, name) for name in names}
    container = story.container()
    assert all(taints(story, name) == [] for name in names)

    go()
    wait_taints(story, names, NO_SCHEDULE)
    story.until("no node sees them", lambda: not any(seeing(story, name) for name in names))

    come()
    wait_taints(story, names)
    story.until("a node sees each", lambda: all(seeing(story, name) for name in names))
    assert {name: held(story, name) for name in names} == before
    assert story.container() == container
    assert "deletionTimestamp" not in story.get("pod", "reader")["metadata"]


def wait_taints(story: Story, names: tuple[str, ...], *wanted: tuple[str, str]) -> None:
    """Wait until the claimed device of each Configuration bears these taints and no others."""
    story.until(
        f"{', '.join(names)}: taints {wanted}",
        lambda: all(taints(story, name) == list(wanted) for name in names),
    )


def held(story: Story, name: str) -> tuple[str, Any]:
    """The UID of the Instance that a claim has, and its allocation."""
    allocation = story.get("resourceclaim", name)["status"]["allocation"]
    return instance(story, name)["metadata"]["uid"], allocation


def taints(story: Story, name: str) -> list[tuple[str, str]]:
    return [(taint["key"], taint["effect"]) for taint in device(story, name).get("taints", ())]


def seeing(story: Story, name: str) -> list[str]:
    """The nodes that see the device of a claim."""
    nodes: list[str] = instance(story, name)["spec"].get("nodes", [])
    return nodes


def instance(story: Story, name: str) -> dict[str, Any]:
    return story.get("akrii", device(story, name)["attributes"]["instance"]["string"])


def device(story: Story, name: str) -> dict[str, Any]:
    """The device that a claim has, as it is published."""
    status = story.get("resourceclaim", name)["status"]
    (result,) = status["allocation"]["devices"]["results"]
    (found,) = (one for one in published(story, name) if one["name"] == result["device"])
    return found


def published(story: Story, name: str) -> list[dict[str, Any]]:
    """The devices of a Configuration, on all nodes."""
    return [
        device
        for slice_ in story.cluster.list("resourceslices")
        if slice_["spec"]["driver"] == "moorage.dev"
        for device in slice_["spec"].get("devices") or ()
        if device["attributes"]["configuration"]["string"] == name
    ]
