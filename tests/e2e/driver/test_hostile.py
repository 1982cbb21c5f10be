"""Configurations that would hurt: each is refused with a sentence, and the others go on."""

from __future__ import annotations

import json

from tests.e2e.driver import lives
from tests.e2e.driver.stories import Story

BOMB = "a: &a [b, b]\n" + "".join(
    f"{chr(name + 1)}: &{chr(name + 1)} [{', '.join([f'*{chr(name)}'] * 9)}]\n"
    for name in range(ord("a"), ord("j"))
)
"""A document of 300 bytes with a billion words in it."""

DETAILS = {
    "bomb": ("udev", BOMB),
    "deep": ("onvif", "[" * 5_000),
    "long": ("opcua", f"applicationNames: {{items: ['{'x' * 100_000}']}}"),
    "rules": ("udev", json.dumps({"udevRules": ['KERNEL="' + "a" * 5_000 + '"']})),
    "nonsense": ("debugEcho", "descriptions: {a: [b]}"),
}


def accepted(story: Story, name: str) -> dict[str, str]:
    """The condition of a Configuration that says whether it is used."""
    found = story.get("akric", name).get("status", {}).get("conditions", ())
    return next((one for one in found if one["type"] == "Accepted"), {})


def test_configurations_that_would_hurt_are_refused_and_the_others_go_on(story: Story) -> None:
    logs = {node: len(driver.logs()) for node, driver in story.drivers.nodes.items()}
    names = {word: f"{story.name}-{word}" for word in DETAILS}
    for word, (handler, details) in DETAILS.items():
        story.cluster.apply(lives.configuration(story, names[word], handler, details))
    absurd = lives.configuration(story, f"{story.name}-absurd", "udev", "", capacity=10**15)
    story.cluster.apply(absurd)
    refused = (*names.values(), f"{story.name}-absurd")
    for name in refused:
        story.until(f"{name} is refused", lambda: accepted(story, name).get("status") == "False")  # noqa: B023
        assert accepted(story, name)["message"].startswith("spec.")

    echo = json.dumps({"descriptions": [story.name]})
    story.cluster.apply(lives.configuration(story, story.name, "debugEcho", echo))
    story.until("the good one is discovered", lambda: story.instances())
    for node, driver in story.drivers.nodes.items():
        said = driver.logs()[logs[node] :]
        assert "Traceback" not in said, said
    for name in (*refused, story.name):
        story.delete("akric", name)
