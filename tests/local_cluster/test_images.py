"""Images that are made without a container builder."""

from __future__ import annotations

import io
import json
import tarfile

from local_cluster import images

SPECS = (
    images.sandbox_image("test/pause:1", b"program"),
    images.shell_image(("test/shell:1", "shell:1"), b"program", ["sh", "busybox", "ls"]),
)


def member(archive: tarfile.TarFile, name: str) -> bytes:
    file = archive.extractfile(name)
    assert file is not None
    return file.read()


def test_archive_is_the_same_for_the_same_input() -> None:
    assert images.docker_archive(SPECS, "amd64") == images.docker_archive(SPECS, "amd64")


def test_manifest_names_each_image_and_files_that_exist() -> None:
    with tarfile.open(fileobj=io.BytesIO(images.docker_archive(SPECS, "amd64"))) as archive:
        manifest = json.loads(member(archive, "manifest.json"))
        configs = [json.loads(member(archive, entry["Config"])) for entry in manifest]
        layers = [member(archive, entry["Layers"][0]) for entry in manifest]

    assert [entry["RepoTags"] for entry in manifest] == [
        ["test/pause:1"],
        ["test/shell:1", "shell:1"],
    ]
    assert all(config["config"]["Cmd"][1] == "sleep" for config in configs)
    assert all(layers)


def test_shell_links_every_applet_but_itself() -> None:
    assert SPECS[1].links == {"bin/sh": "busybox", "bin/ls": "busybox"}
