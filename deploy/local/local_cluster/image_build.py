"""Builds the container image of the components, without a container engine or a registry.

    python -m local_cluster.image_build --tag moorage:local -o FILE

The file is a docker-archive: `ctr -n k8s.io images import FILE` takes it. Three layers, each
cached under the hash of what it is made from:

    base           Debian's Python and the libraries it loads    changes: image.toml
    dependencies   the packages of requirements.lock             changes: the lock file
    components     our packages and commands                     changes: any source file

Not to be confused with `images`, which makes the cluster's own busybox images.
"""

from __future__ import annotations

import argparse
import re
import shutil
import sys
import tarfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from local_cluster import (
    image_archive,
    image_debian,
    image_layers,
    image_python,
    image_recipe,
    image_sources,
)
from local_cluster.cache import cache_dir
from local_cluster.errors import LocalClusterError
from local_cluster.image_archive import write_archive
from local_cluster.image_debian import PROCESSORS, Apt, Base
from local_cluster.image_layers import Fill, Layer, ensure_layer
from local_cluster.image_pins import Pins
from local_cluster.image_python import (
    ImagePython,
    component_files,
    install_components,
    install_dependencies,
)
from local_cluster.image_recipe import CHECKOUT, Components, Recipe, content_key, files_key
from local_cluster.progress import say

TAG = "moorage:local"
BUILDER = (
    image_archive,
    image_debian,
    image_layers,
    image_python,
    image_recipe,
    image_sources,
)


@dataclass(frozen=True)
class Sources:
    """What the image is made from, read from one checkout."""

    checkout: Path
    recipe: Recipe
    components: Components

    @property
    def files(self) -> Path:
        return self.checkout / "deploy/image"

    @property
    def precompile(self) -> Path:
        return self.files / "precompile.py"

    @property
    def pins(self) -> Pins:
        """Empty where a version has none yet."""
        lock = self.files / "debian.lock"
        return Pins.parse(lock.read_text() if lock.exists() else "")

    @property
    def lock(self) -> Path:
        return self.checkout / "requirements.lock"


def build_image(work: Path, tag: str = TAG) -> Path:
    """The image as a file in `work`, ready to import. Only what changed is built."""
    archive = work / f"{re.sub(r'[^A-Za-z0-9.-]', '_', tag)}.tar"
    build_into(archive, tag)
    return archive


def build_into(archive: Path, tag: str, checkout: Path = CHECKOUT) -> tuple[Layer, ...]:
    archive.parent.mkdir(parents=True, exist_ok=True)
    layers = build_layers(read_sources(checkout), cache_dir())
    write_archive(archive, tag, image_debian.architecture(), layers)
    return layers


def read_sources(checkout: Path) -> Sources:
    recipe = Recipe.parse((checkout / "deploy/image/image.toml").read_text())
    components = Components.parse((checkout / "pyproject.toml").read_text())
    return Sources(checkout, recipe, components)


def build_layers(
    sources: Sources, cache: Path, architecture: str | None = None
) -> tuple[Layer, ...]:
    """Bottom layer first. A later one is compiled by the base's Python, so its key holds it.

    Bytecode is the same for all processors, so this machine's own base compiles for others, too.
    """
    native = image_debian.architecture()
    architecture = architecture or native
    own = _ensure_base(sources, cache, native)
    base = own if architecture == native else _ensure_base(sources, cache, architecture)
    python = ImagePython(sources.recipe, own.tree, sources.precompile)
    key = content_key(_shared_key(sources, architecture), base.digest)

    other = "" if architecture == native else PROCESSORS[architecture]
    fill: Fill = partial(install_dependencies, sources.recipe, python, sources.lock, other)
    lock_key = content_key(key, sources.lock.read_bytes())
    dependencies = ensure_layer(cache, _shelf("dependencies", other), lock_key, fill)

    ours = sources.components
    fill = partial(install_components, sources.recipe, ours, python, sources.checkout)
    files = component_files(sources.checkout, ours)
    own_key = content_key(key, str(ours), files_key(sources.checkout, files))
    components = ensure_layer(cache, _shelf("components", other), own_key, fill)
    return base, dependencies, components


def _shelf(name: str, other: str) -> str:
    """Layers for another processor do not push those of this machine out of the cache."""
    return f"{name}-{other}" if other else name


def _ensure_base(sources: Sources, cache: Path, architecture: str) -> Layer:
    native = image_debian.architecture()
    apt = Apt(cache / "apt", architecture, sources.recipe.debian_suite)

    def fill(tree: Path) -> tuple[str, ...]:
        contents = Base(sources.recipe, apt, sources.pins, sources.files / "rootfs").unpack(tree)
        home = tree if architecture == native else _ensure_base(sources, cache, native).tree
        ImagePython(sources.recipe, home, sources.precompile).compile(tree)
        return contents

    files = (path for path in (sources.files / "rootfs").rglob("*") if path.is_file())
    names = sorted(path.relative_to(sources.files).as_posix() for path in files)
    pins = "".join(map(str, sorted(sources.pins.of(architecture))))
    key = content_key(_shared_key(sources, architecture), pins, files_key(sources.files, names))
    other = "" if architecture == native else PROCESSORS[architecture]
    return ensure_layer(cache, _shelf("base", other), key, fill, keep_tree=True)


def _shared_key(sources: Sources, architecture: str) -> str:
    """What every layer depends on: the declaration, the platform, and how this tool builds."""
    builder = (Path(str(module.__file__)).read_bytes() for module in BUILDER)
    return content_key(architecture, sources.recipe.key, sources.precompile.read_bytes(), *builder)


def unpack(layers: Sequence[Layer], folder: Path) -> None:
    """The image's files, one layer over the other."""
    folder.mkdir(parents=True, exist_ok=True)
    for layer in layers:
        with tarfile.open(layer.compressed) as tar:
            tar.extractall(folder, filter="tar")


def forget(cache: Path) -> None:
    """Drop all layers, so that Debian's newest packages are fetched."""
    shutil.rmtree(cache / "image", ignore_errors=True)


def main(argv: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        prog="python -m local_cluster.image_build",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--tag", default=TAG)
    where = parser.add_mutually_exclusive_group(required=True)
    where.add_argument("-o", "--output", type=Path, metavar="FILE")
    where.add_argument("--tree", type=Path, metavar="FOLDER", help="its files, and no archive")
    parser.add_argument(
        "--refresh", action="store_true", help="build all anew, from Debian's newest packages"
    )
    arguments = parser.parse_args(argv)
    started = time.monotonic()
    try:
        if arguments.refresh:
            forget(cache_dir())
        if arguments.tree:
            layers = build_layers(read_sources(CHECKOUT), cache_dir())
            unpack(layers, arguments.tree)
        else:
            layers = build_into(arguments.output, arguments.tag)
    except LocalClusterError as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    for layer in layers:
        megabytes = f"{layer.unpacked_bytes / 1e6:.1f} MB"
        say(f"image: {layer.name} {megabytes} unpacked, sha256:{layer.digest[:12]}")
    place = arguments.tree or arguments.output
    say(f"image: {arguments.tag} in {place}, {time.monotonic() - started:.1f} s")
    return 0


if __name__ == "__main__":
    sys.exit(main())
