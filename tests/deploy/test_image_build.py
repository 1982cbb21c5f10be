"""The image as a whole. Fetches packages the first time, so not a test without a network."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from local_cluster.cache import cache_dir
from local_cluster.image_build import build_layers, read_sources, unpack
from local_cluster.image_layers import Layer
from local_cluster.image_recipe import CHECKOUT

pytestmark = pytest.mark.e2e

LARGEST_UNPACKED = 235_000_000


@pytest.fixture(scope="module")
def layers() -> tuple[Layer, ...]:
    return build_layers(read_sources(CHECKOUT), cache_dir())


@pytest.fixture(scope="module")
def root(layers: tuple[Layer, ...], tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("root")
    unpack(layers, folder)
    return folder


def compiled_files(root: Path) -> Iterator[Path]:
    """Programs and libraries, by the first bytes of their format."""
    for path in root.rglob("*"):
        if path.is_file() and not path.is_symlink():
            with path.open("rb") as file:
                if file.read(4) == b"\x7fELF":
                    yield path


def test_two_builds_are_the_same_to_the_byte(layers: tuple[Layer, ...], tmp_path: Path) -> None:
    again = build_layers(read_sources(CHECKOUT), tmp_path)

    pairs = [(a, b) for a, b in zip(layers, again, strict=True) if a.key == b.key]
    assert {"base", "dependencies"} <= {first.name for first, _ in pairs}
    for first, second in pairs:
        assert first.compressed.read_bytes() == second.compressed.read_bytes(), first.name


def test_the_image_is_small(layers: tuple[Layer, ...]) -> None:
    assert sum(layer.unpacked_bytes for layer in layers) < LARGEST_UNPACKED


def test_every_library_that_is_linked_is_there(root: Path) -> None:
    loader = next(iter(root.glob("usr/lib/*-linux-gnu*/ld-linux*")))
    folders = root.glob("usr/lib/*-linux-gnu*")
    path = ":".join(map(str, folders))
    missing: dict[str, str] = {}
    for file in compiled_files(root):
        argv = (str(loader), "--library-path", path, "--list", str(file))
        done = subprocess.run(argv, capture_output=True, text=True, check=False)
        if "not found" in done.stdout or "cannot open shared object" in done.stderr:
            missing[str(file.relative_to(root))] = done.stdout + done.stderr

    assert missing == {}


def test_all_of_it_is_compiled(root: Path) -> None:
    """Nothing is compiled when a pod starts: it could not even keep the result."""
    sources = [path for path in root.rglob("*.py") if path.stat().st_size]

    assert [
        p for p in sources if not list((p.parent / "__pycache__").glob(f"{p.stem}.*.pyc"))
    ] == []


def test_nothing_of_this_machine_is_in_the_image(layers: tuple[Layer, ...], root: Path) -> None:
    place = str(cache_dir()).encode()

    assert [path for path in root.rglob("*") if path.is_file() and place in path.read_bytes()] == []


def test_each_layer_knows_its_packages(layers: tuple[Layer, ...]) -> None:
    base, dependencies, components = (
        {line.split()[0] for line in layer.contents} for layer in layers
    )

    assert {"libc6", "libudev1", "python3.13-minimal"} <= base
    assert {"grpcio", "kubernetes", "pyudev"} <= dependencies
    assert components == {"moorage"}
