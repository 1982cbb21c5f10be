"""What a part is: a named process of the cluster, its files, and how its health shows."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path


@dataclass(frozen=True)
class HttpProbe:
    """Healthy when GET answers 200."""

    url: str


@dataclass(frozen=True)
class SocketProbe:
    """Healthy when something listens on a UNIX socket of the node."""

    path: str


@dataclass(frozen=True)
class AliveProbe:
    """Healthy as long as the process lives."""


Probe = HttpProbe | SocketProbe | AliveProbe


@dataclass(frozen=True, kw_only=True)
class PartSpec:
    """One part, ready to be started. Same spec, same behaviour."""

    name: str
    argv: tuple[str, ...]
    probe: Probe
    wave: int
    """Parts of one wave start together, once those of the waves before are healthy."""
    node: str | None = None
    """The node whose namespaces it runs in; None for the cluster's network namespace only."""
    files: Mapping[Path, str] = field(default_factory=dict)
    env: Mapping[str, str] = field(default_factory=dict)

    @property
    def fingerprint(self) -> str:
        """Differs when a restart would make a difference."""
        files = {str(path): content for path, content in self.files.items()}
        values = json.dumps([self.argv, self.node, files, dict(self.env)], sort_keys=True)
        return hashlib.sha256(values.encode()).hexdigest()[:16]


def flags(values: Mapping[str, str]) -> tuple[str, ...]:
    return tuple(f"--{name}={value}" for name, value in values.items())


def joined(values: Mapping[str, object]) -> str:
    """`A=true,B=false`, as feature gates and runtime configs are written."""
    return ",".join(f"{name}={_word(value)}" for name, value in sorted(values.items()))


def _word(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)
