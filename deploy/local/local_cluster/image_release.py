"""Builds the image as it is released: for all platforms, with what is to be said of it.

    python -m local_cluster.image_release -o .artifacts/images

    moorage.oci.tar               all platforms; its digest is what a registry will call it
    moorage-<platform>.spdx.json  the packages in it
    moorage.provenance.json       what it was made from
    values.yaml                   names the image by its digest, for the chart

Unlike the image for a local cluster it is made of the pinned Debian packages or not at all.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from local_cluster.cache import cache_dir
from local_cluster.errors import BuildError, LocalClusterError
from local_cluster.image_build import Sources, build_layers, forget, read_sources
from local_cluster.image_documents import bill_of_materials, provenance
from local_cluster.image_layers import Layer
from local_cluster.image_oci import Written, compressed_bytes, write_oci
from local_cluster.image_pins import Package, Pins, written
from local_cluster.image_recipe import CHECKOUT
from local_cluster.progress import say

ARCHITECTURES = ("amd64", "arm64")
LARGEST_COMPRESSED = 160_000_000
PINNED = ("deploy/image/debian.lock", "deploy/image/image.toml", "requirements.lock")

Images = Mapping[str, tuple[Layer, ...]]


def build_all(sources: Sources, cache: Path) -> Images:
    return {name: build_layers(sources, cache, name) for name in ARCHITECTURES}


def packages_of(images: Images) -> tuple[Package, ...]:
    """The Debian packages in the base of each image."""
    return tuple(
        Package(architecture, name, version, digest.removeprefix("sha256:"))
        for architecture, (base, *_) in images.items()
        for name, version, digest in map(str.split, base.contents)
    )


def unpinned(pins: Pins, images: Images) -> tuple[str, ...]:
    """How the images differ from what is pinned, as sentences."""
    found = packages_of(images)
    return tuple(
        f"{name}: {problem}"
        for name in images
        for problem in pins.problems(name, (p for p in found if p.architecture == name))
    )


def release(sources: Sources, pins: Pins, images: Images, folder: Path) -> Written:
    """Write everything into the folder. Raises BuildError if the images are not as pinned."""
    if problems := unpinned(pins, images):
        raise BuildError(f"{problems[0]} ({len(problems)} differ: `make image-lock` pins anew)")
    folder.mkdir(parents=True, exist_ok=True)
    name = f"{sources.components.name}:{sources.components.version}"
    archive = folder / "moorage.oci.tar"
    done = write_oci(archive, sources.components.version, images)
    if (size := compressed_bytes(archive)) > LARGEST_COMPRESSED:
        raise BuildError(f"{archive} has {size} bytes, and {LARGEST_COMPRESSED} are allowed")
    for architecture, layers in images.items():
        bill = bill_of_materials(name, done.platforms[architecture], architecture, layers)
        _write(folder / f"moorage-{architecture}.spdx.json", bill)
    inputs = {path: _sha256(sources.checkout / path) for path in PINNED}
    told = provenance(name, done.digest, commit(sources.checkout), inputs, images)
    _write(folder / "moorage.provenance.json", told)
    (folder / "values.yaml").write_text(f'image:\n  digest: "{done.digest}"\n')
    return done


def commit(checkout: Path) -> str:
    """Of the checkout; empty if it is none, or has changes that no commit has."""
    git = ("git", "-C", str(checkout))
    changed = subprocess.run((*git, "status", "--porcelain"), capture_output=True, check=False)
    if changed.returncode != 0 or changed.stdout:
        return ""
    head = subprocess.run((*git, "rev-parse", "HEAD"), capture_output=True, text=True, check=True)
    return head.stdout.strip()


def _sha256(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def _write(path: Path, document: object) -> None:
    path.write_text(json.dumps(document, indent=1, sort_keys=True) + "\n")


def main(argv: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        prog="python -m local_cluster.image_release",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    what = parser.add_mutually_exclusive_group(required=True)
    what.add_argument("-o", "--output", type=Path, metavar="FOLDER")
    what.add_argument(
        "--lock", action="store_true", help="write debian.lock anew, from Debian's newest packages"
    )
    arguments = parser.parse_args(argv)
    sources = read_sources(CHECKOUT)
    try:
        if arguments.lock:
            forget(cache_dir())
        images = build_all(sources, cache_dir())
        if arguments.output is None:
            (sources.files / "debian.lock").write_text(written(packages_of(images)))
            return 0
        done = release(sources, sources.pins, images, arguments.output)
    except LocalClusterError as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    say(f"image: {done.digest} in {arguments.output}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
