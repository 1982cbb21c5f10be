"""Images that are made without a container builder."""

from __future__ import annotations

from local_cluster import images

SPECS = (
    images.sandbox_image("test/pause:1", b"program"),
    images.shell_image(("test/shell:1", "shell:1"), b"program", ["sh", "busybox", "ls"]),
)


def test_archive_is_the_same_for_the_same_input() -> None:
    assert images.docker_archive(SPECS, "amd64") == images.docker_archive(SPECS, "amd64")
