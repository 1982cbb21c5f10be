"""What a user's shell needs so that kubectl, Helm and our commands reach a cluster."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Iterable
from pathlib import Path

from local_cluster import programs
from local_cluster.blueprint import Blueprint
from local_cluster.files import write_atomically
from local_cluster.go_toolchain import find_built

FILE = "env"


def exports(kubeconfig: Path, folders: Iterable[Path]) -> str:
    """Lines for a shell; the folders of programs come before its own."""
    path = shlex.quote(":".join(dict.fromkeys(str(folder) for folder in folders)))
    return f'export KUBECONFIG={shlex.quote(str(kubeconfig))}\nexport PATH={path}:"$PATH"\n'


def write_exports(blueprint: Blueprint) -> str:
    """Write the lines into the work folder, to be sourced; returns them."""
    helm = find_built(programs.HELM)
    folders = [blueprint.binaries.kubernetes, *((helm,) if helm else ())]
    # Of the venv, with `kubectl moorage`: not resolved, since its Python is a link to elsewhere.
    text = exports(blueprint.layout.kubeconfig, (*folders, Path(sys.executable).parent))
    write_atomically(blueprint.layout.work_dir / FILE, text)
    return text
