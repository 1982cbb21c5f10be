"""Puts images into the containerd of each node."""

from __future__ import annotations

import platform
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from local_cluster import debian, images, linux_nodes
from local_cluster.blueprint import Blueprint, PlannedNode
from local_cluster.configurations import BUSYBOX_IMAGE, BUSYBOX_OF_PAGES, PAUSE_IMAGE
from local_cluster.errors import MachineError
from local_cluster.files import write_atomically
from local_cluster.linux_commands import run
from local_cluster.settings import MAX_NODES

ARCHITECTURES = {"x86_64": "amd64", "aarch64": "arm64"}


def import_basics(blueprint: Blueprint) -> None:
    """The sandbox image and a shell, both from Debian's static busybox."""
    if not blueprint.nodes:
        return
    archive = blueprint.layout.images / "busybox.tar"
    busybox = debian.find("busybox")
    if busybox is None:
        raise MachineError("busybox-static is not installed")
    content, applets = Path(busybox).read_bytes(), run(busybox, "--list").split()
    specs = (
        images.sandbox_image(PAUSE_IMAGE, content),
        images.shell_image((BUSYBOX_IMAGE, BUSYBOX_OF_PAGES), content, applets),
    )
    architecture = ARCHITECTURES.get(platform.machine(), platform.machine())
    write_atomically(archive, images.docker_archive(specs, architecture))
    import_archive(blueprint, archive)


def import_archive(blueprint: Blueprint, archive: Path) -> None:
    """Import into every node. A docker or OCI archive, as `docker save` makes it."""
    _on_each_node(blueprint, "import", str(archive.resolve()))


def tag_image(blueprint: Blueprint, source: str, name: str) -> None:
    """Let an image appear under a name that, perhaps, a kubelet waits for."""
    _on_each_node(blueprint, "tag", "--force", source, name)


def remove_image(blueprint: Blueprint, name: str) -> None:
    _on_each_node(blueprint, "remove", "--sync", name)


def _on_each_node(blueprint: Blueprint, *command: str) -> None:
    ctr = (blueprint.binaries.ctr, "--namespace", "k8s.io", "images")

    def on(node: PlannedNode) -> None:
        argv = linux_nodes.inside(blueprint.layout, node.name, (*ctr, *command))
        run(*argv, timeout_seconds=300)

    with ThreadPoolExecutor(max_workers=MAX_NODES) as pool:
        list(pool.map(on, blueprint.nodes))
