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

FOREVER = ("/bin/busybox", "sleep", "2147483647")


@dataclass(frozen=True)
class ImageSpec:
    """One image of one layer."""

    name: str
    files: Mapping[str, bytes]
    """Path without a leading slash to content; all are executable."""
    links: Mapping[str, str]
    """Path to target of symbolic links."""
    command: Sequence[str]
    other_names: Sequence[str] = ()


def sandbox_image(name: str, busybox: bytes) -> ImageSpec:
    """It only waits, and so keeps the pod's namespaces."""
    return ImageSpec(name, {"bin/busybox": busybox}, {}, FOREVER)


def shell_image(names: Sequence[str], busybox: bytes, applets: Iterable[str]) -> ImageSpec:
    """A shell with all that busybox has, under each of the names."""
    links = {f"bin/{applet}": "busybox" for applet in applets if applet != "busybox"}
    return ImageSpec(names[0], {"bin/busybox": busybox}, links, FOREVER, names[1:])


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
            tags = [image.name, *image.other_names]
            manifest.append({"Config": config_name, "RepoTags": tags, "Layers": [layer_name]})
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
