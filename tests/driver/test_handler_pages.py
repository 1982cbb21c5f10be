"""The Configurations that the pages about handlers show are those that the driver takes."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
import yaml

from driver.api import Problem
from driver.configurations import judge
from driver.discovery.handlers import check_details

DOCS = Path(__file__).parents[2] / "docs"
PAGES = ("handlers-udev.md",)
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
