"""What becomes of devices, told of every handler in the same way: used, gone, and back."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Collection, Mapping
from typing import Any

import yaml

from tests.e2e.driver.installation import ROOT
from tests.e2e.driver.stories import Story

Taint = tuple[str, str]
"""Key and effect."""

NO_SCHEDULE: Taint = ("moorage.dev/offline", "NoSchedule")

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


def configuration(
    story: Story, name: str, handler: str, details: str, **spec: Any
) -> dict[str, Any]:
    """A Configuration of any handler."""
    told = {"name": handler, "discoveryDetails": details}
    return {
        "apiVersion": "akri.sh/v0",
        "kind": "Configuration",
        "metadata": {"name": name, "namespace": story.namespace},
        "spec": {"discoveryHandler": told, **spec},
    }


def claim(name: str, selectors: Selectors) -> dict[str, Any]:
    """A claim for one device of a Configuration, under its name."""
    cel = [{"cel": {"expression": expression}} for expression in selectors]
    request = {"name": "one", "exactly": {"deviceClassName": name, "selectors": cel}}
    return {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceClaim",
        "metadata": {"name": name},
        "spec": {"devices": {"requests": [request]}},
    }


def use(story: Story, devices: Mapping[str, Selectors], *, look: str = "") -> list[str]:
    """Claim a device of each Configuration for one pod, and give what its container sees.

    Args:
        story: The pod is `reader`.
        devices: What each device is selected by, by the Configuration's name.
        look: A command of the shell; what it prints comes after the environment.
    """
    claims = [claim(name, selectors) for name, selectors in devices.items()]
    story.cluster.apply(claims, namespace=story.namespace)
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
    story: Story, names: Collection[str], *, go: Callable[[], None], come: Callable[[], None]
) -> None:
    """Let the devices go away and come back that the pod `reader` has, and see that it has them."""
    before = Look(story, names)
    assert before.is_seen([])

    go()
    wait_away(story, names, NO_SCHEDULE)
    come()
    story.until("they are back, untainted", lambda: Look(story, names).is_seen([]))

    after = Look(story, names)
    assert after.uses == before.uses
    assert after.containers == before.containers
    assert "deletionTimestamp" not in after.objects["Pod"]["reader"]["metadata"]


def wait_tainted(story: Story, names: Collection[str], *taints: Taint) -> None:
    """Wait until the claimed devices, which are there, bear these taints."""
    story.until(f"they bear {taints}", lambda: Look(story, names).is_seen([*taints]))


def wait_away(story: Story, names: Collection[str], taint: Taint) -> None:
    """Wait until the claimed devices bear this taint, and no node sees them."""
    story.until(f"they are away, and bear {taint}", lambda: Look(story, names).is_away([taint]))


class Look:
    """The devices that a story's claims have, all at one moment.

    Attributes:
        objects: By kind and name.
        devices: As they are published, by the Configuration whose claim has them.
    """

    def __init__(self, story: Story, names: Collection[str]) -> None:
        kinds = "pods,resourceclaims,instances.akri.sh,resourceslices"
        self.objects: dict[str, dict[str, dict[str, Any]]] = defaultdict(dict)
        for one in story.cluster.list(kinds, namespace=story.namespace):
            self.objects[one["kind"]][one["metadata"]["name"]] = one
        self.devices = {name: self._device(name) for name in names}

    def _device(self, name: str) -> dict[str, Any]:
        status = self.objects["ResourceClaim"][name]["status"]
        (result,) = status["allocation"]["devices"]["results"]
        (found,) = (one for one in self.published(name) if one["name"] == result["device"])
        return found

    def published(self, name: str) -> list[dict[str, Any]]:
        """The devices of a Configuration, on all nodes."""
        return [
            device
            for slice_ in self.objects["ResourceSlice"].values()
            if slice_["spec"]["driver"] == "moorage.dev"
            for device in slice_["spec"].get("devices") or ()
            if device["attributes"]["configuration"]["string"] == name
        ]

    def _instance(self, name: str) -> dict[str, Any]:
        return self.objects["Instance"][self.devices[name]["attributes"]["instance"]["string"]]

    @property
    def uses(self) -> dict[str, Any]:
        """The UID of the Instance that each claim has, and the allocation."""
        return {
            name: (
                self._instance(name)["metadata"]["uid"],
                self.objects["ResourceClaim"][name]["status"]["allocation"],
            )
            for name in self.devices
        }

    @property
    def containers(self) -> list[Any]:
        """What says whether the pod's container was left alone."""
        (status,) = self.objects["Pod"]["reader"]["status"]["containerStatuses"]
        return [status[name] for name in ("containerID", "restartCount", "state")]

    def is_seen(self, taints: list[Taint]) -> bool:
        """Whether some node sees each device, and it bears these taints and no others."""
        return self._bear(taints) and all(map(self._seeing, self.devices))

    def is_away(self, taints: list[Taint]) -> bool:
        """Whether no node sees any, and each bears these taints and no others."""
        return self._bear(taints) and not any(map(self._seeing, self.devices))

    def _seeing(self, name: str) -> list[str]:
        nodes: list[str] = self._instance(name)["spec"].get("nodes", [])
        return nodes

    def _bear(self, taints: list[Taint]) -> bool:
        return all(
            [(taint["key"], taint["effect"]) for taint in device.get("taints", ())] == taints
            for device in self.devices.values()
        )


def wait_evicted(story: Story, names: Collection[str]) -> None:
    """Wait until the pod is gone that used these devices, and nothing is left of them."""

    def over() -> bool:
        look = Look(story, ())
        instances = look.objects["Instance"].values()
        left = [i for i in instances if i["spec"]["configurationName"] in names]
        return not (look.objects["Pod"] or left or any(map(look.published, names)))

    story.until("the pod is evicted, and its devices and Instances are gone", over)
