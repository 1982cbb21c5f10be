"""What the image is made of: `deploy/image/image.toml`, the lock file and the checkout."""

from __future__ import annotations

import hashlib
import json
import tomllib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

from local_cluster.errors import BuildError

CHECKOUT = Path(__file__).resolve().parents[3]


@dataclass(frozen=True, kw_only=True)
class Recipe:
    """The declaration, read once. Equal recipes give equal images."""

    python: str
    """The minor version: Debian's packages and folders are named after it."""
    debian_suite: str
    """The codename of the release that the packages are of."""
    debian_packages: tuple[str, ...]
    debian_without: frozenset[str]
    debian_prune: tuple[str, ...]
    dependencies_prune: tuple[str, ...]
    sourceless: tuple[str, ...]
    key: str

    @classmethod
    def parse(cls, text: str) -> Self:
        try:
            values = tomllib.loads(text)
            return cls(
                python=values["python"],
                debian_suite=values["debian"]["suite"],
                debian_packages=tuple(values["debian"]["packages"]),
                debian_without=frozenset(values["debian"]["without"]),
                debian_prune=tuple(values["debian"]["prune"]),
                dependencies_prune=tuple(values["dependencies"]["prune"]),
                sourceless=tuple(values["dependencies"]["sourceless"]),
                key=content_key(json.dumps(values, sort_keys=True)),
            )
        except tomllib.TOMLDecodeError as error:
            raise BuildError(f"image.toml is not TOML: {error}") from error
        except KeyError as error:
            raise BuildError(f"image.toml lacks {error}") from error

    @property
    def site_packages(self) -> str:
        """Debian's interpreter looks for packages that are not Debian's here."""
        return f"usr/local/lib/python{self.python}/dist-packages"


@dataclass(frozen=True, kw_only=True)
class Components:
    """What `pyproject.toml` says of our own distribution."""

    name: str
    version: str
    packages: tuple[str, ...]
    scripts: Mapping[str, str]
    """Command to `module:function`."""

    @classmethod
    def parse(cls, text: str) -> Self:
        values: Mapping[str, Any] = tomllib.loads(text)
        project = values["project"]
        return cls(
            name=project["name"],
            version=project["version"],
            packages=tuple(values["tool"]["hatch"]["build"]["targets"]["wheel"]["packages"]),
            scripts=project.get("scripts", {}),
        )


def content_key(*parts: str | bytes) -> str:
    """Names a layer by what it is made from. Lengths keep neighbouring parts apart."""
    digest = hashlib.sha256()
    for part in parts:
        data = part.encode() if isinstance(part, str) else part
        digest.update(b"%d:" % len(data))
        digest.update(data)
    return digest.hexdigest()[:24]


def files_key(root: Path, names: Iterable[str]) -> str:
    parts: list[str | bytes] = []
    for name in names:
        parts += [name, (root / name).read_bytes()]
    return content_key(*parts)
