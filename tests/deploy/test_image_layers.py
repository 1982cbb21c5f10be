"""Layers: the same bytes from the same files, kept under the key of what they are made from."""

from __future__ import annotations

import hashlib
import os
import tarfile
from pathlib import Path

import pytest

from local_cluster.image_layers import (
    KEPT_PER_NAME,
    ensure_layer,
    remove_matching,
    write_tar,
)


def fill(tree: Path) -> tuple[str, ...]:
    (tree / "usr/bin").mkdir(parents=True)
    (tree / "usr/bin/tool").write_text("#!/bin/true\n")
    (tree / "usr/bin/tool").chmod(0o700)
    (tree / "usr/bin/alias").symlink_to("tool")
    (tree / "etc").mkdir()
    (tree / "etc/passwd").write_text("root:x:0:0\n")
    (tree / "etc/passwd").chmod(0o600)
    (tree / "tmp").mkdir()
    (tree / "tmp").chmod(0o1777)
    return ("tool 1.0",)


def test_two_trees_with_the_same_files_give_the_same_tar(tmp_path: Path) -> None:
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
        fill(tmp_path / name)
    os.utime(tmp_path / "two/etc/passwd", (1, 1))

    digests = {write_tar(tmp_path / name, tmp_path / f"{name}.tar") for name in ("one", "two")}

    assert (tmp_path / "one.tar").read_bytes() == (tmp_path / "two.tar").read_bytes()
    assert digests == {hashlib.sha256((tmp_path / "one.tar").read_bytes()).hexdigest()}


def test_entries_are_sorted_belong_to_root_and_have_no_time(tmp_path: Path) -> None:
    (tmp_path / "tree").mkdir()
    fill(tmp_path / "tree")

    write_tar(tmp_path / "tree", tmp_path / "layer.tar")

    with tarfile.open(tmp_path / "layer.tar") as tar:
        entries = tar.getmembers()
    assert [(e.name, oct(e.mode)) for e in entries] == [
        ("etc", "0o755"),
        ("etc/passwd", "0o644"),
        ("tmp", "0o1777"),
        ("usr", "0o755"),
        ("usr/bin", "0o755"),
        ("usr/bin/alias", "0o777"),
        ("usr/bin/tool", "0o755"),
    ]
    assert {(e.uid, e.gid, e.uname, e.gname, e.mtime) for e in entries} == {(0, 0, "", "", 0)}


def test_a_layer_is_built_once(tmp_path: Path) -> None:
    calls: list[Path] = []

    def counted(tree: Path) -> tuple[str, ...]:
        calls.append(tree)
        return fill(tree)

    built = ensure_layer(tmp_path, "base", "key", counted)
    cached = ensure_layer(tmp_path, "base", "key", counted)

    assert built == cached
    assert len(calls) == 1
    assert cached.contents == ("tool 1.0",)
    assert cached.compressed_bytes == cached.compressed.stat().st_size
    assert not cached.tree.exists()


def test_a_tree_is_kept_where_a_later_layer_needs_it(tmp_path: Path) -> None:
    layer = ensure_layer(tmp_path, "base", "key", fill, keep_tree=True)

    assert (layer.tree / "usr/bin/tool").is_file()


def test_a_layer_that_failed_leaves_nothing_behind(tmp_path: Path) -> None:
    def broken(tree: Path) -> tuple[str, ...]:
        fill(tree)
        raise RuntimeError("no network")

    with pytest.raises(RuntimeError):
        ensure_layer(tmp_path, "base", "key", broken)

    assert [path.name for path in (tmp_path / "image/base").iterdir()] == ["lock"]
    assert ensure_layer(tmp_path, "base", "key", fill).contents == ("tool 1.0",)


def test_old_layers_are_forgotten(tmp_path: Path) -> None:
    layers = [ensure_layer(tmp_path, "components", str(n), fill) for n in range(KEPT_PER_NAME)]
    for age, layer in enumerate(layers):
        os.utime(layer.folder, (age, age))

    ensure_layer(tmp_path, "components", "new", fill)

    assert [layer.folder.exists() for layer in layers] == [False, True, True]


def test_patterns_at_the_root_reach_no_deeper(tmp_path: Path) -> None:
    fill(tmp_path)

    remove_matching(tmp_path, ("tmp", "usr/bin/al*", "tool"))

    assert sorted(p.name for p in tmp_path.rglob("*")) == ["bin", "etc", "passwd", "tool", "usr"]


def test_a_link_that_leads_nowhere_is_removed_too(tmp_path: Path) -> None:
    fill(tmp_path)
    (tmp_path / "etc/site.py").symlink_to("/nowhere/site.py")

    remove_matching(tmp_path, ("etc/site.py",))

    assert not (tmp_path / "etc/site.py").is_symlink()


def test_patterns_anywhere_reach_all_folders(tmp_path: Path) -> None:
    fill(tmp_path)

    remove_matching(tmp_path, ("bin", "pass*"), anywhere=True)

    assert sorted(p.name for p in tmp_path.rglob("*")) == ["etc", "tmp", "usr"]
