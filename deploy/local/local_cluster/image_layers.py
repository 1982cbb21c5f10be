"""Layers of a container image as tar files that are the same on every build.

A layer lies in the cache under the key of what it was made from:

    <cache>/image/<name>/<key>/tree        the files, kept only where a later layer needs them
    <cache>/image/<name>/<key>/layer.tar.gz
    <cache>/image/<name>/<key>/layer.json  written last: without it the folder is debris
"""

from __future__ import annotations

import gzip
import hashlib
import os
import shutil
import stat
import tarfile
import tempfile
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from local_cluster.files import locked, read_json, write_json

KEPT_PER_NAME = 3
EXECUTABLE = 0o755
PLAIN = 0o644


@dataclass(frozen=True, kw_only=True)
class Layer:
    """One layer in the cache."""

    name: str
    key: str
    digest: str
    """SHA-256 of the tar before compression: the layer's diff ID."""
    compressed_bytes: int
    unpacked_bytes: int
    contents: tuple[str, ...]
    """What it is made of, for people: package and version."""
    folder: Path

    @property
    def compressed(self) -> Path:
        return self.folder / "layer.tar.gz"

    @property
    def tree(self) -> Path:
        return self.folder / "tree"


Fill = Callable[[Path], tuple[str, ...]]
"""Puts the files of a layer into an empty folder; answers what they are, for people."""


def ensure_layer(cache: Path, name: str, key: str, fill: Fill, *, keep_tree: bool = False) -> Layer:
    """The cached layer, or a new one. A second builder waits for the first."""
    shelf = cache / "image" / name
    with locked(shelf / "lock"):
        if (layer := _cached(shelf, name, key)) is None:
            layer = _build(shelf, name, key, fill, keep_tree=keep_tree)
        os.utime(layer.folder)
        _forget_oldest(shelf)
    return layer


def _cached(shelf: Path, name: str, key: str) -> Layer | None:
    folder = shelf / key
    facts: dict[str, Any] | None = read_json(folder / "layer.json")
    if facts is None:
        return None
    facts["contents"] = tuple(facts["contents"])
    return Layer(name=name, key=key, folder=folder, **facts)


def _build(shelf: Path, name: str, key: str, fill: Fill, *, keep_tree: bool) -> Layer:
    folder = shelf / key
    with _temporary(shelf) as building:
        tree = building / "tree"
        tree.mkdir()
        contents = fill(tree)
        tar = building / "layer.tar"
        digest = write_tar(tree, tar)
        facts: dict[str, Any] = {
            "digest": digest,
            "compressed_bytes": _compress(tar, building / "layer.tar.gz"),
            "unpacked_bytes": unpacked_bytes(tree),
            "contents": contents,
        }
        tar.unlink()
        write_json(building / "layer.json", facts)
        if not keep_tree:
            shutil.rmtree(tree)
        shutil.rmtree(folder, ignore_errors=True)
        building.rename(folder)
    return Layer(name=name, key=key, folder=folder, **facts)


@contextmanager
def _temporary(shelf: Path) -> Iterator[Path]:
    folder = Path(tempfile.mkdtemp(prefix=".building-", dir=shelf))
    folder.chmod(0o755)
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _forget_oldest(shelf: Path) -> None:
    folders = [path for path in shelf.iterdir() if (path / "layer.json").is_file()]
    folders.sort(key=lambda path: path.stat().st_mtime, reverse=True)
    for folder in folders[KEPT_PER_NAME:]:
        shutil.rmtree(folder, ignore_errors=True)


def write_tar(tree: Path, target: Path) -> str:
    """Write the tree: sorted, owned by root, without times. The answer is the tar's SHA-256."""
    with tarfile.open(target, "w", format=tarfile.PAX_FORMAT) as tar:
        for path in sorted(tree.rglob("*"), key=lambda path: path.relative_to(tree).parts):
            _add(tar, path, path.relative_to(tree).as_posix())
    with target.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _compress(tar: Path, target: Path) -> int:
    """Fast rather than small: what counts is how long an import into a node reads."""
    with (
        tar.open("rb") as source,
        target.open("wb") as file,
        gzip.GzipFile("", "wb", compresslevel=1, fileobj=file, mtime=0) as packed,
    ):
        shutil.copyfileobj(source, packed, 1 << 20)
    return target.stat().st_size


def _add(tar: tarfile.TarFile, path: Path, name: str) -> None:
    status = path.lstat()
    entry = tarfile.TarInfo(name)
    if stat.S_ISLNK(status.st_mode):
        entry.type = tarfile.SYMTYPE
        entry.linkname = str(path.readlink())
        entry.mode = 0o777
        tar.addfile(entry)
    elif stat.S_ISDIR(status.st_mode):
        entry.type = tarfile.DIRTYPE
        entry.mode = 0o1777 if status.st_mode & stat.S_ISVTX else EXECUTABLE
        tar.addfile(entry)
    else:
        entry.mode = EXECUTABLE if status.st_mode & stat.S_IXUSR else PLAIN
        entry.size = status.st_size
        with path.open("rb") as content:
            tar.addfile(entry, content)


def unpacked_bytes(tree: Path) -> int:
    return sum(path.lstat().st_size for path in tree.rglob("*") if not path.is_dir())


def remove_matching(tree: Path, patterns: tuple[str, ...], *, anywhere: bool = False) -> None:
    """Remove what the shell patterns match at the tree's root, or in any of its folders."""
    for pattern in patterns:
        matches = tree.rglob(pattern) if anywhere else _at_root(tree, pattern)
        for path in sorted(matches):
            if path.is_dir() and not path.is_symlink():
                shutil.rmtree(path)
            else:
                path.unlink(missing_ok=True)


def _at_root(tree: Path, pattern: str) -> Iterable[Path]:
    """Also a link that leads nowhere on this machine, which `glob` finds by a wildcard only."""
    named = tree / pattern
    return [named] if named.is_symlink() else tree.glob(pattern)
