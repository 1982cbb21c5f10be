"""The Debian packages that the image is made of, by version and digest: `deploy/image/debian.lock`.

A line is architecture, package, version and SHA-256 of the file. What apt fetched is compared with
it; Debian's archive keeps the newest versions only, so what is pinned may be gone.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Self

from local_cluster.errors import BuildError

HEAD = "# Made by `make image-lock`: the Debian packages of the image's base.\n"
LINE = re.compile(r"(\S+) (\S+) (\S+) sha256:([0-9a-f]{64})")


@dataclass(frozen=True, order=True)
class Package:
    """A file of Debian's archive."""

    architecture: str
    """That the image is for; the package itself may be of `all`."""
    name: str
    version: str
    sha256: str

    def __str__(self) -> str:
        return f"{self.architecture} {self.name} {self.version} sha256:{self.sha256}"


@dataclass(frozen=True)
class Pins:
    """What the lock says; empty if there is none."""

    packages: Mapping[tuple[str, str], Package]

    @classmethod
    def parse(cls, text: str) -> Self:
        lines = [line for line in text.splitlines() if line and not line.startswith("#")]
        found = [_package(line) for line in lines]
        return cls({(p.architecture, p.name): p for p in found})

    def of(self, architecture: str) -> tuple[Package, ...]:
        return tuple(p for p in self.packages.values() if p.architecture == architecture)

    def problems(self, architecture: str, fetched: Iterable[Package]) -> tuple[str, ...]:
        """How what was fetched differs from what is pinned, as sentences."""
        found = {package.name: package for package in fetched}
        pinned = {package.name: package for package in self.of(architecture)}
        if not pinned:
            return (f"debian.lock has no packages of {architecture}",)
        lost = [f"{name} is pinned and was not fetched" for name in pinned.keys() - found.keys()]
        new = [f"{name} is not pinned" for name in found.keys() - pinned.keys()]
        others = [
            f"{name} {found[name].version} is not the pinned {pinned[name].version}"
            if found[name].version != pinned[name].version
            else f"{name} {found[name].version} has another digest than the pinned one"
            for name in found.keys() & pinned.keys()
            if found[name] != pinned[name]
        ]
        return tuple(sorted((*lost, *new, *others)))


def _package(line: str) -> Package:
    if (found := LINE.fullmatch(line)) is None:
        raise BuildError(f"debian.lock: {line!r} is not architecture, package, version and digest")
    return Package(*found.groups())


def written(packages: Iterable[Package]) -> str:
    return HEAD + "".join(f"{package}\n" for package in sorted(packages))
