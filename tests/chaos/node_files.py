"""One node as its kubelet and its files show it."""

from __future__ import annotations

import json
import os
import stat
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from tests.chaos import podresources
from tests.chaos.node_reports import Container, NodeReport, Numbers
from tests.chaos.objects import Object

CDI_FOLDER = "run/cdi"
"""By way of `/var/run` it would be this machine's: that is a link."""
OURS = "moorage.dev-claim-"
BUNDLES = "run/containerd/io.containerd.runtime.v2.task/k8s.io"
KIND = "io.kubernetes.cri.container-type"
NAME = "io.kubernetes.cri.container-name"
POD = "io.kubernetes.cri.sandbox-uid"


def report(node: str, root: Path) -> NodeReport:
    """Everything that a node says.

    Args:
        node: Its name.
        root: Its file system, as seen from here.
    """
    return NodeReport(
        node,
        podresources.listed(root),
        dict(_cdi_files(root / CDI_FOLDER)),
        tuple(_containers(root)),
        dict(_block_devices(root / "dev")),
    )


def _cdi_files(folder: Path) -> Iterator[tuple[str, Object]]:
    for file in sorted(folder.glob(f"{OURS}*")):
        with suppress(OSError, ValueError):
            yield file.name, json.loads(file.read_text())


def _containers(root: Path) -> Iterator[Container]:
    """Those whose first process lives; one that ends meanwhile is none."""
    for bundle in sorted((root / BUNDLES).glob("*")):
        with suppress(OSError, ValueError):
            annotations = json.loads((bundle / "config.json").read_text())["annotations"]
            if annotations.get(KIND) == "container":
                process = root / "proc" / (bundle / "init.pid").read_text().strip()
                yield Container(
                    annotations[POD],
                    annotations[NAME],
                    _environment(process),
                    dict(_block_devices(process / "root/dev")),
                )


def _environment(process: Path) -> dict[str, str]:
    text = (process / "environ").read_bytes().decode(errors="replace")
    entries = (entry.partition("=") for entry in text.split("\0"))
    return {name: value for name, sign, value in entries if sign}


def _block_devices(folder: Path) -> Iterator[tuple[str, Numbers]]:
    for entry in sorted(os.listdir(folder)):
        with suppress(OSError):
            found = os.lstat(folder / entry)
            if stat.S_ISBLK(found.st_mode):
                yield f"/dev/{entry}", (os.major(found.st_rdev), os.minor(found.st_rdev))
