"""The image for all platforms, and what is said of it."""

from __future__ import annotations

import hashlib
import json
import subprocess
import tarfile
from pathlib import Path
from typing import Any

import pytest
import yaml

from local_cluster import image_debian
from local_cluster.cache import cache_dir
from local_cluster.errors import BuildError
from local_cluster.image_build import read_sources, unpack
from local_cluster.image_debian import Apt
from local_cluster.image_oci import index_of
from local_cluster.image_pins import Package, Pins, written
from local_cluster.image_recipe import CHECKOUT
from local_cluster.image_release import ARCHITECTURES, Images, build_all, packages_of, release

pytestmark = pytest.mark.e2e

LARGEST_BYTES = 160_000_000
"""Compressed, of both platforms."""

LOADS = """
import ctypes, pathlib, platform, sys
print(platform.machine())
for path in pathlib.Path(sys.argv[1]).rglob("*.so"):
    ctypes.CDLL(str(path))
    print(path.name)
"""
SOURCES = read_sources(CHECKOUT)


@pytest.fixture(scope="module")
def images() -> Images:
    return build_all(SOURCES, cache_dir())


@pytest.fixture(scope="module")
def pins(images: Images) -> Pins:
    """Those of the moment: Debian's archive moves on, and what was pinned is gone then."""
    return Pins.parse(written(packages_of(images)))


@pytest.fixture(scope="module")
def released(images: Images, pins: Pins, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("released")
    release(SOURCES, pins, images, folder)
    return folder


def read(folder: Path, name: str) -> Any:
    return json.loads((folder / name).read_text())


def test_two_releases_are_the_same_to_the_byte(
    released: Path, images: Images, pins: Pins, tmp_path: Path
) -> None:
    release(SOURCES, pins, images, tmp_path)

    for path in released.iterdir():
        assert path.read_bytes() == (tmp_path / path.name).read_bytes(), path.name


def test_all_of_it_is_small_enough_to_pull(released: Path) -> None:
    assert (released / "moorage.oci.tar").stat().st_size <= LARGEST_BYTES


def test_each_blob_has_the_name_of_its_content(released: Path) -> None:
    index = index_of(released / "moorage.oci.tar")
    with tarfile.open(released / "moorage.oci.tar") as tar:
        blobs = {e.name: tar.extractfile(e).read() for e in tar if e.name.startswith("blobs/")}  # type: ignore[union-attr]

    assert {m["platform"]["architecture"] for m in index["manifests"]} == set(ARCHITECTURES)
    for name, content in blobs.items():
        assert name == f"blobs/sha256/{hashlib.sha256(content).hexdigest()}"
    named = {m["digest"].removeprefix("sha256:") for m in index["manifests"]}
    assert {f"blobs/sha256/{digest}" for digest in named} < blobs.keys()


def test_all_that_is_in_it_is_listed(released: Path, images: Images) -> None:
    for architecture, layers in images.items():
        bill = read(released, f"moorage-{architecture}.spdx.json")
        listed = {(p["name"], p["versionInfo"]) for p in bill["packages"]}
        assert {tuple(line.split()[:2]) for layer in layers for line in layer.contents} < listed
        assert len({p["SPDXID"] for p in bill["packages"]}) == len(bill["packages"])


def test_the_chart_is_told_the_digest_that_provenance_is_about(released: Path) -> None:
    told = read(released, "moorage.provenance.json")
    values = yaml.safe_load((released / "values.yaml").read_text())

    (subject,) = told["subject"]
    assert values["image"]["digest"] == f"sha256:{subject['digest']['sha256']}"
    needed = told["predicate"]["buildDefinition"]["resolvedDependencies"]
    assert [one for one in needed if one["uri"] == "requirements.lock"]
    assert [one for one in needed if one["uri"].startswith("pkg:deb/debian/libc6@")]


def test_what_is_not_as_pinned_is_not_released(images: Images, tmp_path: Path) -> None:
    other = [
        Package(p.architecture, p.name, f"{p.version}1", p.sha256) for p in packages_of(images)
    ]

    with pytest.raises(BuildError, match=r"amd64: .* is not the pinned"):
        release(SOURCES, Pins.parse(written(other)), images, tmp_path)


def test_each_compiled_part_for_the_other_platform_is_loaded(
    images: Images, tmp_path: Path
) -> None:
    """On an emulator. That of this platform is run by all stories."""
    native = image_debian.architecture()
    (other,) = {*ARCHITECTURES} - {native}
    unpack(images[other], tmp_path)
    loader = next(iter(tmp_path.glob("lib*/ld-linux*")))
    folders = [*tmp_path.glob("lib/*-linux-gnu*"), *tmp_path.glob("usr/lib/*-linux-gnu*")]
    done = subprocess.run(
        (
            *Apt(cache_dir() / "apt", other, SOURCES.recipe.debian_suite).emulator(),
            str(loader),
            *("--library-path", ":".join(map(str, folders))),
            str(tmp_path / f"usr/bin/python{SOURCES.recipe.python}"),
            *("-c", LOADS, str(tmp_path / SOURCES.recipe.site_packages)),
        ),
        env={"PYTHONHOME": str(tmp_path / "usr")},
        capture_output=True,
        text=True,
        check=False,
    )

    assert done.returncode == 0, done.stderr
    processor, *loaded = done.stdout.splitlines()
    assert processor == image_debian.PROCESSORS[other]
    assert {name.partition(".")[0] for name in loaded} > {"etree", "cygrpc", "loop", "_core"}
