"""What the browser is given: nothing from elsewhere, nothing inline, others' files as they are."""

from __future__ import annotations

import hashlib
import re
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
ASSETS = ROOT / "scheduler_plugin" / "dashboard" / "assets"
VENDOR = ASSETS / "vendor"
OWN = sorted(path for path in ASSETS.iterdir() if path.suffix in {".html", ".js", ".css", ".svg"})

PACKAGES = tomllib.loads((VENDOR / "vendored.toml").read_text())
FILES = {file["name"]: file["sha256"] for found in PACKAGES.values() for file in found["files"]}


@pytest.mark.parametrize("name", FILES)
def test_what_others_wrote_is_their_packages_file(name: str) -> None:
    assert hashlib.sha256((VENDOR / name).read_bytes()).hexdigest() == FILES[name]


def test_everything_of_others_is_recorded_with_its_licence() -> None:
    there = {path.name for path in VENDOR.iterdir()} - {"vendored.toml"}

    assert there == set(FILES)
    for package in PACKAGES.values():
        assert package["license"] == "MIT"
        assert any(file["name"].endswith("LICENSE") for file in package["files"])


@pytest.mark.parametrize("path", OWN, ids=lambda path: path.name)
def test_nothing_is_fetched_from_elsewhere(path: Path) -> None:
    text = path.read_text().replace("http://www.w3.org/2000/svg", "")

    assert not re.search(r"https?:|//[a-z]+\.|@import", text)


def test_the_page_has_no_inline_script_or_style() -> None:
    page = (ASSETS / "index.html").read_text()

    assert re.findall(r"<script(?![^>]* src=)", page) == []
    assert re.findall(r"<style|\sstyle=|\son[a-z]+=", page) == []


@pytest.mark.parametrize("path", [p for p in OWN if p.suffix == ".js"], ids=lambda path: path.name)
def test_names_of_the_cluster_are_never_read_as_html(path: Path) -> None:
    forbidden = r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|\beval\(|new Function"

    assert not re.search(forbidden, path.read_text())
    assert "localStorage" not in path.read_text()
    assert "cookie" not in path.read_text().replace("never a cookie", "")
