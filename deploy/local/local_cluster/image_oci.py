"""Joins the images of several platforms into one OCI archive, whose digest is the image's.

`skopeo copy --all oci-archive:FILE docker://REGISTRY/moorage:TAG` and `crane push` carry it to a
registry without changing a byte, so the digest that is written here is the one to name there.
"""

from __future__ import annotations

import hashlib
import io
import json
import tarfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from local_cluster.image_archive import encode, image_config
from local_cluster.image_layers import Layer

INDEX = "application/vnd.oci.image.index.v1+json"
MANIFEST = "application/vnd.oci.image.manifest.v1+json"
CONFIG = "application/vnd.oci.image.config.v1+json"
LAYER = "application/vnd.oci.image.layer.v1.tar+gzip"
REFERENCE = "org.opencontainers.image.ref.name"

Json = dict[str, Any]


@dataclass(frozen=True)
class Written:
    """What an archive holds.

    Attributes:
        digest: Of the index of all platforms, such as `sha256:…`.
        platforms: Digest of each platform's own manifest.
    """

    digest: str
    platforms: Mapping[str, str]


class Archive:
    """An OCI layout in a tar; what is in it is a function of the layers alone."""

    def __init__(self, tar: tarfile.TarFile) -> None:
        self._tar = tar
        self._held: set[str] = set()

    def add(self, name: str, content: bytes) -> None:
        entry = tarfile.TarInfo(name)
        entry.size = len(content)
        self._tar.addfile(entry, io.BytesIO(content))

    def blob(self, media_type: str, content: bytes) -> Json:
        """Add it once; returns its descriptor."""
        digest = hashlib.sha256(content).hexdigest()
        if digest not in self._held:
            self._held.add(digest)
            self.add(f"blobs/sha256/{digest}", content)
        return {"mediaType": media_type, "digest": f"sha256:{digest}", "size": len(content)}


def write_oci(archive: Path, tag: str, images: Mapping[str, Sequence[Layer]]) -> Written:
    """Write one archive of the images, by Debian's name of each architecture."""
    with tarfile.open(archive, "w", format=tarfile.PAX_FORMAT) as tar:
        to = Archive(tar)
        manifests = [_image(to, name, layers) for name, layers in sorted(images.items())]
        index = _document(INDEX, manifests=manifests)
        described = to.blob(INDEX, encode(index))
        named = {**described, "annotations": {REFERENCE: tag}}
        to.add("index.json", encode(_document(INDEX, manifests=[named])))
        to.add("oci-layout", encode({"imageLayoutVersion": "1.0.0"}))
    platforms = {m["platform"]["architecture"]: m["digest"] for m in manifests}
    return Written(described["digest"], platforms)


def _image(to: Archive, architecture: str, layers: Sequence[Layer]) -> Json:
    found = image_config(architecture, layers)
    config = to.blob(CONFIG, encode(found))
    packed = [to.blob(LAYER, layer.compressed.read_bytes()) for layer in layers]
    manifest = to.blob(MANIFEST, encode(_document(MANIFEST, config=config, layers=packed)))
    return {**manifest, "platform": {key: found[key] for key in ("architecture", "os")}}


def _document(media_type: str, **parts: Any) -> Json:
    return {"schemaVersion": 2, "mediaType": media_type, **parts}


def compressed_bytes(archive: Path) -> int:
    """What a registry keeps of it."""
    with tarfile.open(archive) as tar:
        return sum(entry.size for entry in tar)


def index_of(archive: Path) -> Json:
    """The index of all platforms that an archive holds."""
    with tarfile.open(archive) as tar:
        (top,) = _read(tar, "index.json")["manifests"]
        return _read(tar, f"blobs/sha256/{top['digest'].removeprefix('sha256:')}")


def _read(tar: tarfile.TarFile, name: str) -> Json:
    file = tar.extractfile(name)
    assert file is not None
    found: Json = json.loads(file.read())
    return found
