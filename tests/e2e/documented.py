"""The commands and files of INSTALL.md."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

from local_cluster import programs
from local_cluster.api import BUSYBOX_IMAGE, Cluster
from local_cluster.go_toolchain import ensure_built
from moorage_demo.installation import ROOT
from moorage_demo.release import VALUES

INSTALL = (ROOT / "INSTALL.md").read_text()
FIRST_CLAIM = "From an empty cluster to the first claim"


def blocks(language: str, text: str = INSTALL) -> list[str]:
    return re.findall(rf"^```{language}\n(.+?)^```", text, re.MULTILINE | re.DOTALL)


def commands(heading: str) -> str:
    """What a section says is to be typed."""
    (found,) = blocks("sh", _section(heading))
    return found


def _section(heading: str) -> str:
    _, _, rest = INSTALL.partition(f"\n## {heading}\n")
    return rest.partition("\n## ")[0]


def values() -> list[str]:
    """The files of values; what begins with an API version is applied."""
    return [text for text in blocks("yaml") if "apiVersion" not in text and "limits:" not in text]


def prepare(folder: Path) -> None:
    """A folder as the user's: the checkout's chart, his values, and the first objects."""
    (folder / "deploy").symlink_to(ROOT / "deploy")
    own = VALUES.read_text().replace("create: true", "create: false")
    (folder / "moorage-values.yaml").write_text(f"{own}\ndriver: {{namespace: moorage-driver}}\n")
    (first,) = blocks("yaml", _section(FIRST_CLAIM))
    # The nodes of the tests have a shell and no registry.
    (folder / "first.yaml").write_text(first.replace("image: busybox", f"image: {BUSYBOX_IMAGE}"))


def run(cluster: Cluster, heading: str, folder: Path) -> str:
    """Type the commands of a section; returns what they print."""
    path = [str(ensure_built(programs.HELM)), str(Path(cluster.kubectl_program).parent)]
    path.append(str(Path(sys.executable).parent))
    env = {
        **os.environ,
        "KUBECONFIG": str(cluster.kubeconfig),
        "PATH": os.pathsep.join([*path, os.environ["PATH"]]),
    }
    done = subprocess.run(
        ("bash", "-euxc", commands(heading)),
        cwd=folder,
        env=env,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr + done.stdout
    return done.stdout
