"""The version before, as stories of upgrades get it from a clone's history."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from tests.e2e.earlier import EarlierError, unpack


def git(folder: Path, *args: str) -> str:
    author = ("-c", "user.name=a", "-c", "user.email=a@example.com")
    argv = ("git", "-C", str(folder), *author, *args)
    return subprocess.run(argv, capture_output=True, text=True, check=True).stdout.strip()


@pytest.fixture
def origin(tmp_path: Path) -> Path:
    """Two commits; the file says which."""
    folder = tmp_path / "origin"
    folder.mkdir()
    git(folder, "init", "--quiet")
    for number in ("one", "two"):
        (folder / "file").write_text(number)
        git(folder, "add", "file")
        git(folder, "commit", "--quiet", "--message", number)
    return folder


@pytest.fixture
def shallow(origin: Path, tmp_path: Path) -> Path:
    folder = tmp_path / "shallow"
    git(tmp_path, "clone", "--quiet", "--depth=1", f"file://{origin}", str(folder))
    return folder


def test_an_earlier_version_is_unpacked(origin: Path, shallow: Path, tmp_path: Path) -> None:
    commit = git(origin, "rev-parse", "HEAD~1")

    for repository, target in ((origin, tmp_path / "a"), (shallow, tmp_path / "b")):
        unpack(commit, target, repository)
        assert (target / "file").read_text() == "one"


def test_a_clone_that_cannot_have_it_says_so(origin: Path, shallow: Path, tmp_path: Path) -> None:
    commit = git(origin, "rev-parse", "HEAD~1")
    git(shallow, "remote", "remove", "origin")

    with pytest.raises(EarlierError, match=f"{commit[:7]}, is not in the history of"):
        unpack(commit, tmp_path / "a", shallow)
