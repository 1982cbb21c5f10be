"""README, CHANGELOG and the page of figures stay short, and links of all pages lead somewhere.

`make docs` holds the pages of the site: there a link that leads nowhere is a warning. Pages that
are read in a checkout alone are held here.
"""

from __future__ import annotations

import re
import subprocess
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

ROOT = Path(__file__).resolve().parent.parent
README = (ROOT / "README.md").read_text()
CHANGELOG = (ROOT / "CHANGELOG.md").read_text()
PERFORMANCE = (ROOT / "docs" / "performance.md").read_text()
MOST_WORDS = 1_200
MOST_WORDS_OF_AN_ENTRY = 20
PAGES = subprocess.check_output(("git", "ls-files", "*.md"), cwd=ROOT, text=True).split()

LINK = re.compile(r"\]\(([^)\s]+)\)")
VERSION = re.compile(r"^## (.+)$", re.MULTILINE)
RELEASED = re.compile(r"\d+\.\d+\.\d+ - \d{4}-\d\d-\d\d")
BENCH = re.compile(r"python -m bench\.(\w+)")
FENCED = re.compile(r"^```.*?^```$", re.MULTILINE | re.DOTALL)
AMOUNT = r"(?:\d[\d,.]*(?: to \d[\d,.]*)?(?: [%\w]+)*(?:, once| at most)?|all|\u2013)"
"""A figure with its unit, or two that it lies between."""


def test_the_readme_is_read_in_some_minutes() -> None:
    assert len(README.split()) <= MOST_WORDS


@pytest.mark.parametrize(
    "said",
    ["make demo", "make test", "make install", "![", "| Akri | KAI | Kueue | DRA alone |"],
)
def test_the_readme_shows_what_it_is(said: str) -> None:
    assert said in README


def test_the_readme_compares_in_five_rows() -> None:
    _, _, rest = README.partition("| DRA alone |\n")
    table = rest.partition("\n\n")[0].splitlines()

    assert len(table) == 1 + 5


def test_the_readme_says_in_ten_lines_who_is_charged() -> None:
    section = README.partition("\n## Who is charged\n")[2].partition("\n## ")[0]

    assert len(re.findall(r"^\d+\. ", section, re.MULTILINE)) == 10


def entries() -> list[str]:
    return [line for line in CHANGELOG.splitlines() if line.startswith("- ")]


def test_an_entry_of_the_changelog_is_one_line_of_few_words() -> None:
    long = [line for line in entries() if len(line.split()) - 1 > MOST_WORDS_OF_AN_ENTRY]
    lines = CHANGELOG.splitlines()
    wrapped = [line for line in lines if line.startswith(" ")]

    assert entries()
    assert (long, wrapped) == ([], [])


def test_no_entry_of_the_changelog_stands_there_twice() -> None:
    assert len(set(entries())) == len(entries())


def test_the_changelog_has_versions_and_what_comes_next() -> None:
    unreleased, *released = VERSION.findall(CHANGELOG)

    assert unreleased == "Unreleased"
    assert released
    assert [version for version in released if not RELEASED.fullmatch(version)] == []


def test_the_last_version_of_the_changelog_is_that_of_package_and_chart() -> None:
    version = VERSION.findall(CHANGELOG)[1].partition(" ")[0]
    chart = yaml.safe_load((ROOT / "deploy/helm/moorage/Chart.yaml").read_text())
    package = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]

    assert (chart["version"], chart["appVersion"], package["version"]) == (version,) * 3


def tables(text: str) -> Iterator[list[list[str]]]:
    """Each table's rows, without its head."""
    for block in text.split("\n\n"):
        if block.startswith("|"):
            lines = block.strip().splitlines()[2:]
            yield [[cell.strip() for cell in line.strip("|").split(" | ")] for line in lines]


def test_a_cell_of_the_page_of_figures_is_one_figure() -> None:
    rows = [row for table in tables(PERFORMANCE) for row in table]
    several = [row for row in rows if not all(re.fullmatch(AMOUNT, cell) for cell in row[1:])]

    assert len(rows) > 100
    assert several == []


def test_a_table_of_figures_stands_below_a_command_that_is_there() -> None:
    sections = re.split(r"^## .+$", PERFORMANCE, flags=re.MULTILINE)[1:]
    named = set(BENCH.findall(PERFORMANCE))

    without = [section for section in sections if not re.search(r"`(?:python -m|make) ", section)]
    assert without == []
    assert named
    assert {name for name in named if not (ROOT / "bench" / f"{name}.py").is_file()} == set()


@pytest.mark.parametrize("page", PAGES)
def test_links_of_a_page_lead_to_files_that_are_there(page: str) -> None:
    text = FENCED.sub("", (ROOT / page).read_text())
    paths = {link.partition("#")[0] for link in LINK.findall(text) if "://" not in link}
    folder = (ROOT / page).parent

    assert [path for path in paths if path and not (folder / path).exists()] == []


def anchors(page: Path) -> set[str]:
    """As MyST and GitHub make them of headings."""
    heads = re.findall(r"^#+ (.+)$", FENCED.sub("", page.read_text()), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", head.lower()).replace(" ", "-") for head in heads}


@pytest.mark.parametrize("page", ["README.md", "CONTRIBUTING.md", "CHANGELOG.md", "SECURITY.md"])
def test_links_to_headings_lead_to_headings_that_are_there(page: str) -> None:
    found = re.findall(r"\]\(([\w/.-]*\.md)#([^)]+)\)", (ROOT / page).read_text())

    assert [(path, name) for path, name in found if name not in anchors(ROOT / path)] == []
