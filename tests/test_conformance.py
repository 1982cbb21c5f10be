"""What `docs/conformance*.md` say of tests is so: each that is named is there."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PAGES = sorted((ROOT / "docs").glob("conformance*.md"))
TEST = re.compile(r"`(?:[\w/]*/)?(test_\w+(?:\.py)?)`")
DEFINITION = re.compile(r"^ *(?:async )?def (test_\w+)", re.MULTILINE)


def _tests() -> set[str]:
    files = list((ROOT / "tests").rglob("test_*.py"))
    return {path.name for path in files} | {
        name for path in files for name in DEFINITION.findall(path.read_text())
    }


def test_there_are_pages() -> None:
    assert [page.name for page in PAGES] == ["conformance-kai.md", "conformance.md"]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_every_test_that_is_named_is_there(page: Path) -> None:
    named = set(TEST.findall(page.read_text()))

    assert named
    assert named - _tests() == set()


@pytest.mark.parametrize("page", [p for p in PAGES if p.name == "conformance.md"])
def test_a_scenario_passes_by_a_test_or_says_why_not(page: Path) -> None:
    rows = [line for line in page.read_text().splitlines() if line.startswith("|")]
    passing = [row for row in rows if "| passes |" in row]

    assert passing
    for row in passing:
        assert TEST.search(row) or "`python -m bench" in row, row
