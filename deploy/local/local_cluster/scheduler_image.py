"""Builds an image with kube-scheduler and nothing else, for the pod of Moorage's scheduler.

Clusters elsewhere take their distribution's image; here there is no registry to fetch one from.
"""

from __future__ import annotations

import re
import shutil
from functools import partial
from pathlib import Path

from local_cluster import image_debian, programs
from local_cluster.cache import cache_dir
from local_cluster.go_toolchain import ensure_built
from local_cluster.image_archive import Start, write_archive
from local_cluster.image_layers import Layer, ensure_layer
from local_cluster.image_recipe import content_key

TAG = "kube-scheduler:local"
PROGRAM = "usr/local/bin/kube-scheduler"


def build_scheduler_image(work: Path, kubernetes: str = programs.NEWEST, tag: str = TAG) -> Path:
    """The image as a file in `work`, ready to import: one layer of one static program."""
    archive = work / f"{re.sub(r'[^A-Za-z0-9.-]', '_', tag)}.tar"
    archive.parent.mkdir(parents=True, exist_ok=True)
    layer = _layer(ensure_built(programs.kube_scheduler(kubernetes)))
    start = Start((f"/{PROGRAM}",))
    write_archive(archive, tag, image_debian.architecture(), (layer,), start)
    return archive


def _layer(built: Path) -> Layer:
    """The folder's name holds the hash of all that the program is linked from."""
    fill = partial(_fill, built / "kube-scheduler")
    return ensure_layer(cache_dir(), "kube-scheduler", content_key(built.name, PROGRAM), fill)


def _fill(program: Path, tree: Path) -> tuple[str, ...]:
    target = tree / PROGRAM
    target.parent.mkdir(parents=True)
    shutil.copy(program, target)
    return (program.parent.name,)
