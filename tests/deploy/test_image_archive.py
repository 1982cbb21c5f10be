"""The archive: a docker-archive that is the same for the same layers."""

from __future__ import annotations

import gzip
import hashlib
import json
import tarfile
from pathlib import Path

import pytest

from local_cluster.errors import BuildError
from local_cluster.image_archive import SEARCH_PATH, Start, image_config, write_archive
from local_cluster.image_layers import Layer, ensure_layer


def layers(tmp_path: Path) -> tuple[Layer, ...]:
    def fill(name: str, tree: Path) -> tuple[str, ...]:
        (tree / name).write_text(name)
        return (name,)

    return tuple(
        ensure_layer(tmp_path, name, "key", lambda tree, name=name: fill(name, tree))  # type: ignore[misc]
        for name in ("base", "components")
    )


def test_the_manifest_names_what_the_archive_holds(tmp_path: Path) -> None:
    archive = tmp_path / "image.tar"
    below, above = layers(tmp_path)

    write_archive(archive, "moorage:local", "amd64", (below, above))

    with tarfile.open(archive) as tar:
        content = {entry.name: tar.extractfile(entry).read() for entry in tar}  # type: ignore[union-attr]
    (manifest,) = json.loads(content.pop("manifest.json"))
    config = content.pop(manifest["Config"])
    assert manifest["RepoTags"] == ["moorage:local"]
    assert manifest["Layers"] == [f"{layer.digest}/layer.tar.gz" for layer in (below, above)]
    assert manifest["Config"] == f"{hashlib.sha256(config).hexdigest()}.json"
    assert [
        hashlib.sha256(gzip.decompress(content[name])).hexdigest() for name in manifest["Layers"]
    ] == [diff_id.removeprefix("sha256:") for diff_id in json.loads(config)["rootfs"]["diff_ids"]]
    assert content.keys() == set(manifest["Layers"])


def test_two_archives_of_the_same_layers_are_the_same(tmp_path: Path) -> None:
    for name in ("one.tar", "two.tar"):
        write_archive(tmp_path / name, "moorage:local", "amd64", layers(tmp_path))

    assert (tmp_path / "one.tar").read_bytes() == (tmp_path / "two.tar").read_bytes()


@pytest.mark.parametrize(("debian", "oci"), [("amd64", "amd64"), ("ppc64el", "ppc64le")])
def test_the_architecture_is_called_as_oci_calls_it(debian: str, oci: str, tmp_path: Path) -> None:
    assert image_config(debian, layers(tmp_path))["architecture"] == oci


@pytest.mark.parametrize("tag", ["", "moorage", "Moorage:local", "moorage:lo cal", "/x:y"])
def test_a_tag_that_is_none_is_refused(tag: str, tmp_path: Path) -> None:
    with pytest.raises(BuildError, match="no image name with a tag"):
        write_archive(tmp_path / "image.tar", tag, "amd64", ())


def test_a_container_starts_what_the_image_says(tmp_path: Path) -> None:
    config = image_config("amd64", layers(tmp_path), Start(("/usr/local/bin/tool",)))["config"]

    assert config["Cmd"] == ["/usr/local/bin/tool"]
    assert config["Env"] == [SEARCH_PATH]
