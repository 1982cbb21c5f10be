"""The commands and files of INSTALL.md, the tutorial and the how-to pages, as a user types them.

A page's YAML whose first line is a comment with a file's name is that file. What its `sh` blocks
say is typed, one block after the other; a block `text` below one is what it must have printed:
these lines in this order, with `…` for anything, and spaces as wide as they come.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

from local_cluster import programs
from local_cluster.api import Cluster
from local_cluster.go_toolchain import ensure_built
from moorage_demo.installation import ROOT
from moorage_demo.release import VALUES

DOCS = ROOT / "docs"
README = (ROOT / "README.md").read_text()
INSTALL = (ROOT / "INSTALL.md").read_text()
FIRST_CLAIM = "From an empty cluster to the first claim"


def blocks(language: str, text: str = INSTALL) -> list[str]:
    return re.findall(rf"^```{language}\n(.+?)^```", text, re.MULTILINE | re.DOTALL)


def commands(heading: str) -> str:
    """What a section says is to be typed."""
    (found,) = blocks("sh", section(heading))
    return found


def section(heading: str) -> str:
    _, _, rest = INSTALL.partition(f"\n## {heading}\n")
    return rest.partition("\n## ")[0]


def values() -> list[str]:
    """The files of values; what begins with an API version is applied."""
    return [text for text in blocks("yaml") if "apiVersion" not in text and "limits:" not in text]


def prepare(folder: Path, path: str = "auto") -> None:
    """A folder as the user's: the checkout's chart, his values, and the first objects.

    `path` is the chart's `driver.path`.
    """
    (folder / "deploy").symlink_to(ROOT / "deploy")
    own = VALUES.read_text().replace("create: true", "create: false")
    driver = f"driver: {{namespace: moorage-driver, path: {path}}}"
    (folder / "moorage-values.yaml").write_text(f"{own}\n{driver}\n")
    (first,) = blocks("yaml", section(FIRST_CLAIM))
    (folder / "first.yaml").write_text(first)


def run(cluster: Cluster, heading: str, folder: Path) -> str:
    """Type the commands of a section of INSTALL.md; returns what they print."""
    return run_text(cluster, commands(heading), folder)


def run_text(cluster: Cluster, typed: str, folder: Path) -> str:
    """The same of any commands."""
    done = _type(cluster, typed, folder)
    assert done.returncode == 0, done.stderr + done.stdout
    return done.stdout


def follow(cluster: Cluster, page: Path, folder: Path) -> None:
    """Do what a page says, from its first block to its last."""
    follow_text(cluster, page.name, page.read_text(), folder)


def follow_text(cluster: Cluster, name: str, page: str, folder: Path) -> None:
    printed = ""
    for language, text in _BLOCK.findall(page):
        if language == "yaml" and (file := _FILE.match(text)):
            (folder / file[1]).write_text(text)
        elif language == "sh":
            done = _type(cluster, text, folder)
            assert done.returncode == 0, f"{name}: {done.stderr}{done.stdout}"
            printed = done.stdout
        elif language == "text":
            missing = [line for line in text.splitlines() if not _is_printed(line, printed)]
            assert not missing, f"{name}: {missing} is not in what was printed:\n{printed}"


_BLOCK = re.compile(r"^```(\w+)\n(.+?)^```", re.MULTILINE | re.DOTALL)
_FILE = re.compile(r"# ([\w-]+\.yaml)")


def _is_printed(line: str, printed: str) -> bool:
    words = (re.escape(" ".join(part.split())) for part in line.split("…"))
    return re.search(".*".join(words), re.sub(r"[^\S\n]+", " ", printed)) is not None


def _type(cluster: Cluster, typed: str, folder: Path) -> subprocess.CompletedProcess[str]:
    path = [str(ensure_built(programs.HELM)), str(Path(cluster.kubectl_program).parent)]
    path.append(str(Path(sys.executable).parent))
    env = {
        **os.environ,
        "KUBECONFIG": str(cluster.kubeconfig),
        "PATH": os.pathsep.join([*path, os.environ["PATH"]]),
    }
    return subprocess.run(
        ("bash", "-euxc", typed), cwd=folder, env=env, capture_output=True, text=True, check=False
    )
