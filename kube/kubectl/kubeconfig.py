"""Which kubeconfig a user means, and what is current in it, as kubectl reads it."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from kube.calls.disk_files import is_there

DEFAULT_NAMESPACE = "default"

_CURRENT = re.compile(rb"""(?mi)^current-context:[ \t]+["']?(?!null)[a-z0-9]""")
"""As kubectl and other tools write it; a kubeconfig in JSON is parsed."""


@dataclass(frozen=True, slots=True)
class Choice:
    """The cluster that a user chose.

    Attributes:
        file: None for kubectl's own choice: those of KUBECONFIG, else the one in the home folder.
        context: "" for the current one.
    """

    file: Path | None = None
    context: str = ""

    @property
    def flags(self) -> tuple[str, ...]:
        """By which kubectl is told the same."""
        file = (f"--kubeconfig={self.file}",) if self.file else ()
        return (*file, f"--context={self.context}") if self.context else file

    @property
    def files(self) -> Sequence[Path]:
        """In kubectl's order: what the first of them says counts."""
        if self.file:
            return (self.file,)
        own = os.environ.get("KUBECONFIG", "")
        return [Path(f) for f in own.split(os.pathsep) if f] or [Path.home() / ".kube" / "config"]

    def has_files(self) -> bool:
        """Whether one of them is there, and each that is there may be read more than once.

        Without one, kubectl asks a server on this machine. A pipe is empty once kubectl read it.
        """
        there = [file for file in self.files if is_there(file)]
        return bool(there) and all(file.is_file() for file in there)


def choice_of(file: Path | None, context: str) -> Choice:
    """Of a file that may be named by KUBECONFIG, which may name several, and then is kubectl's."""
    own = os.environ.get("KUBECONFIG")
    return Choice(None if file and own and Path(own) == file else file, context)


def has_context(choice: Choice) -> bool:
    """Whether a context is named, or current, which most files say plainly, without YAML.

    Without one, kubectl asks a server on this machine, which may be any web server.
    """
    if choice.context or any(_CURRENT.search(text) for text in _texts(choice.files)):
        return True
    return current_context(choice) is not None


def current_namespace(choice: Choice) -> str:
    """That of the current context, or the default one.

    Most users' files name no namespace, which is seen without YAML, whose import takes longer than
    all else here.
    """
    context = current_context(choice) if _may_say(choice.files, b"namespace") else None
    return (context or {}).get("namespace") or DEFAULT_NAMESPACE


def _may_say(files: Sequence[Path], key: bytes) -> bool:
    """Whether the key may be in one of them: it may be written with escapes, or in UTF-16."""
    return any(part in text for text in _texts(files) for part in (key, b"\\", b"\0"))


def _texts(files: Sequence[Path]) -> Sequence[bytes]:
    """Of those that are there; nothing where one of them cannot be read."""
    try:
        return [file.read_bytes() for file in files if is_there(file)]
    except OSError:
        return ()


def has_login(choice: Choice) -> bool:
    """Whether a credential plugin tells who the user is: it may ask for a password, and wait."""
    try:
        configs = list(_read(choice.files))
        name = (_context(configs, choice.context) or {}).get("user")
        user = _named(configs, "users", name) or {}
        return bool(user.get("exec") or user.get("auth-provider"))
    except _DAMAGED:
        return False


def current_context(choice: Choice) -> Mapping[str, Any] | None:
    """Its cluster, user and namespace; None where there is none that can be read."""
    try:
        return _context(list(_read(choice.files)), choice.context)
    except _DAMAGED:
        return None


_DAMAGED = (OSError, ValueError, KeyError, TypeError, AttributeError)


def _context(configs: Sequence[Mapping[str, Any]], name: str) -> Mapping[str, Any] | None:
    name = name or next((c["current-context"] for c in configs if c.get("current-context")), "")
    return _named(configs, "contexts", name)


def _named(configs: Sequence[Mapping[str, Any]], kind: str, name: Any) -> Mapping[str, Any] | None:
    """Of the entries of a kind, such as `contexts`, the first of this name."""
    entries = (entry for config in configs for entry in config.get(kind) or ())
    return next((entry[kind.removesuffix("s")] for entry in entries if entry["name"] == name), None)


def _read(files: Sequence[Path]) -> Iterator[Mapping[str, Any]]:
    # Takes a tenth of a whole call, and only some need it.
    import yaml

    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    for file in files:
        if is_there(file):
            try:
                yield yaml.load(file.read_bytes(), Loader=loader) or {}
            except yaml.YAMLError as error:
                raise ValueError(f"{file}: {error}") from error
