"""Joins layers into a docker-archive, the format of `docker save`.

containerd completes the short name of a docker-archive's tag as the kubelet does, so a pod's
`image: moorage:local` finds it.
"""

from __future__ import annotations

import hashlib
import io
import json
import re
import tarfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from local_cluster.errors import BuildError
from local_cluster.files import locked
from local_cluster.image_layers import Layer

EPOCH = "1970-01-01T00:00:00Z"
# Where Debian's and OCI's names of an architecture differ.
OCI_ARCHITECTURES = {"armhf": "arm", "i386": "386", "ppc64el": "ppc64le"}
SEARCH_PATH = "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"


@dataclass(frozen=True)
class Start:
    """What a container of the image runs, as long as its pod does not say otherwise."""

    command: tuple[str, ...]
    environment: tuple[str, ...] = (SEARCH_PATH,)


COMPONENTS = Start(
    ("moorage-driver", "--help"),
    (SEARCH_PATH, "PYTHONDONTWRITEBYTECODE=1", "PYTHONUNBUFFERED=1"),
)


def write_archive(
    archive: Path,
    tag: str,
    debian_architecture: str,
    layers: Sequence[Layer],
    start: Start = COMPONENTS,
) -> None:
    """Replace the file at once: whoever imports the old one keeps reading it."""
    if not re.fullmatch(r"[a-z0-9][a-z0-9._/-]*:[A-Za-z0-9._-]+", tag):
        raise BuildError(f"{tag!r} is no image name with a tag, such as moorage:local")
    config = encode(image_config(debian_architecture, layers, start))
    config_name = f"{hashlib.sha256(config).hexdigest()}.json"
    manifest = {
        "Config": config_name,
        "RepoTags": [tag],
        "Layers": [layer_name(layer) for layer in layers],
    }
    temporary = archive.with_name(f".{archive.name}.building")
    with locked(archive.with_name(f".{archive.name}.lock")):
        with tarfile.open(temporary, "w", format=tarfile.PAX_FORMAT) as tar:
            for layer in layers:
                _add_layer(tar, layer)
            _add_bytes(tar, config_name, config)
            _add_bytes(tar, "manifest.json", encode([manifest]))
        temporary.replace(archive)


def image_config(
    debian_architecture: str, layers: Sequence[Layer], start: Start = COMPONENTS
) -> dict[str, Any]:
    """A function of its arguments alone, so that equal layers give equal images."""
    return {
        "architecture": OCI_ARCHITECTURES.get(debian_architecture, debian_architecture),
        "os": "linux",
        "created": EPOCH,
        "config": {
            "Cmd": list(start.command),
            "Env": list(start.environment),
            "WorkingDir": "/",
        },
        "rootfs": {"type": "layers", "diff_ids": [f"sha256:{layer.digest}" for layer in layers]},
        "history": [{"created": EPOCH, "created_by": layer.name} for layer in layers],
    }


def encode(value: Any) -> bytes:
    return json.dumps(value, sort_keys=True, separators=(",", ":")).encode()


def _add_bytes(tar: tarfile.TarFile, name: str, content: bytes) -> None:
    entry = tarfile.TarInfo(name)
    entry.size = len(content)
    tar.addfile(entry, io.BytesIO(content))


def layer_name(layer: Layer) -> str:
    return f"{layer.digest}/layer.tar.gz"


def _add_layer(tar: tarfile.TarFile, layer: Layer) -> None:
    entry = tarfile.TarInfo(layer_name(layer))
    entry.size = layer.compressed_bytes
    with layer.compressed.open("rb") as content:
        tar.addfile(entry, content)
