"""Small container images as tar archives, made without a container builder.

The format is that of `docker save`, which `ctr images import` reads.
"""

from __future__ import annotations

import hashlib
import io
import json
import tarfile
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

SHELL_TOOLS = (
    "cat", "chmod", "cp", "date", "echo", "env", "false", "find", "grep", "head", "hostname",
    "id", "ip", "kill", "ls", "mkdir", "mknod", "mount", "mv", "nc", "nslookup", "printenv",
    "ps", "readlink", "rm", "sed", "sh", "sleep", "stat", "tail", "test", "touch", "tr", "true",
    "umount", "uname", "wc", "wget",
)  # fmt: skip


@dataclass(frozen=True)
class ImageSpec:
    """One image of one layer."""

    name: str
    files: Mapping[str, bytes]
    """Path without a leading slash to content; all are executable."""
    links: Mapping[str, str]
    """Path to target of symbolic links."""
    command: Sequence[str]


def busybox_images(busybox: bytes, pause: str, shell: str) -> tuple[ImageSpec, ImageSpec]:
    """The sandbox image, which only waits, and a shell with the usual tools for tests."""
    files = {"bin/busybox": busybox}
    links = {f"bin/{tool}": "busybox" for tool in SHELL_TOOLS}
    forever = ("/bin/busybox", "sleep", "2147483647")
    return ImageSpec(pause, files, {}, forever), ImageSpec(shell, files, links, forever)


def docker_archive(images: Iterable[ImageSpec], architecture: str) -> bytes:
    """Byte-identical for the same input, so that importing twice changes nothing."""
    output = io.BytesIO()
    manifest: list[dict[str, object]] = []
    with tarfile.open(fileobj=output, mode="w") as archive:
        for image in images:
            layer = _layer(image)
            digest = hashlib.sha256(layer).hexdigest()
            config = json.dumps(_config(image, architecture, digest)).encode()
            config_name = f"{hashlib.sha256(config).hexdigest()}.json"
            layer_name = f"{hashlib.sha256(image.name.encode()).hexdigest()}/layer.tar"
            _add(archive, config_name, config)
            _add(archive, layer_name, layer)
            manifest.append(
                {"Config": config_name, "RepoTags": [image.name], "Layers": [layer_name]}
            )
        _add(archive, "manifest.json", json.dumps(manifest).encode())
    return output.getvalue()


def _config(image: ImageSpec, architecture: str, layer_digest: str) -> dict[str, object]:
    return {
        "architecture": architecture,
        "os": "linux",
        "config": {"Cmd": list(image.command), "Env": ["PATH=/bin"], "WorkingDir": "/"},
        "rootfs": {"type": "layers", "diff_ids": [f"sha256:{layer_digest}"]},
    }


def _layer(image: ImageSpec) -> bytes:
    output = io.BytesIO()
    with tarfile.open(fileobj=output, mode="w") as archive:
        for folder in ("bin", "dev", "etc", "proc", "sys", "tmp", "var", "var/run"):
            entry = tarfile.TarInfo(folder)
            entry.type, entry.mode = tarfile.DIRTYPE, 0o755
            archive.addfile(entry)
        for path, content in image.files.items():
            _add(archive, path, content)
        for path, target in image.links.items():
            entry = tarfile.TarInfo(path)
            entry.type, entry.linkname = tarfile.SYMTYPE, target
            archive.addfile(entry)
    return output.getvalue()


def _add(archive: tarfile.TarFile, path: str, content: bytes) -> None:
    entry = tarfile.TarInfo(path)
    entry.size, entry.mode = len(content), 0o755
    archive.addfile(entry, io.BytesIO(content))
