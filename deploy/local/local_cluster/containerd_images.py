"""Puts images into the containerd of each node."""

from __future__ import annotations

import platform
from pathlib import Path

from local_cluster import debian, images, linux_nodes
from local_cluster.blueprint import Blueprint
from local_cluster.configurations import BUSYBOX_IMAGE, PAUSE_IMAGE
from local_cluster.errors import MachineError
from local_cluster.files import write_atomically
from local_cluster.linux_commands import run

ARCHITECTURES = {"x86_64": "amd64", "aarch64": "arm64"}


def import_basics(blueprint: Blueprint) -> None:
    """The sandbox image and a shell, both from Debian's static busybox."""
    if not blueprint.nodes:
        return
    archive = blueprint.layout.images / "busybox.tar"
    busybox = debian.find("busybox")
    if busybox is None:
        raise MachineError("busybox-static is not installed")
    specs = images.busybox_images(Path(busybox).read_bytes(), PAUSE_IMAGE, BUSYBOX_IMAGE)
    architecture = ARCHITECTURES.get(platform.machine(), platform.machine())
    write_atomically(archive, images.docker_archive(specs, architecture))
    import_archive(blueprint, archive)


def import_archive(blueprint: Blueprint, archive: Path) -> None:
    """Import into every node. A docker or OCI archive, as `docker save` makes it."""
    for node in blueprint.nodes:
        ctr = (blueprint.binaries.ctr, "--namespace", "k8s.io", "images", "import")
        argv = (*ctr, str(archive.resolve()))
        run(*linux_nodes.inside(blueprint.layout, node.name, argv), timeout_seconds=300)
