"""What the pages about devices show is what the driver takes, and what stories are told with."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
import yaml

from driver.api import Problem
from driver.configurations.configurations import judge
from driver.discovery.handlers import check_details

DOCS = Path(__file__).parents[3] / "docs"
PAGES = (
    "going-away.md",
    "handlers-debugecho.md",
    "handlers-onvif.md",
    "handlers-opcua.md",
    "handlers-udev.md",
)
STORIES = Path(__file__).parents[2] / "e2e" / "driver"
SERVER = {"uid": "u", "creationTimestamp": "2026-11-20T12:00:00Z"}


def configurations(page: str) -> list[Any]:
    blocks = re.findall(r"```yaml\n(.*?)```", (DOCS / page).read_text(), re.DOTALL)
    documents = (document for block in blocks for document in yaml.safe_load_all(block))
    return [d for d in documents if isinstance(d, dict) and d.get("kind") == "Configuration"]


@pytest.mark.parametrize("page", PAGES)
def test_the_examples_of_a_page_are_accepted(page: str) -> None:
    found = configurations(page)

    assert found
    for body in found:
        body["metadata"].update(SERVER)
        verdict = judge(body, check_details, unique_devices_default=True)
        assert verdict.problems == (), body


def test_the_message_that_the_udev_page_shows_is_the_drivers() -> None:
    details = "udevRules:\n- 'KERNEL==\"video0'\n"

    [problem] = check_details("udev", details)

    assert isinstance(problem, Problem)
    assert str(problem) in (DOCS / "handlers-udev.md").read_text()


def test_the_selectors_of_every_page_are_those_that_a_story_claims_devices_by() -> None:
    told = "".join(story.read_text() for story in STORIES.glob("*.py"))

    shown = [page.name for page in DOCS.glob("*.md") if "cel:\n" in page.read_text()]

    assert len(shown) >= 5
    assert [page for page in shown if f'examples("{page}"' not in told] == []
