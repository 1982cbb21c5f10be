"""Which kubeconfig a user chose, and its current context, as kubectl reads them."""

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
"""The line as kubectl and other tools write it; a kubeconfig in JSON is parsed instead."""


@dataclass(frozen=True, slots=True)
class Choice:
    """The cluster that a user chose.

    Attributes:
        file: None for kubectl's default: the files of KUBECONFIG, else `~/.kube/config`.
        context: "" for the current context.
    """

    file: Path | None = None
    context: str = ""

    @property
    def flags(self) -> tuple[str, ...]:
        """The same choice as flags of kubectl."""
        file = (f"--kubeconfig={self.file}",) if self.file else ()
        return (*file, f"--context={self.context}") if self.context else file

    @property
    def files(self) -> Sequence[Path]:
        """The files in kubectl's order: the first one that sets a value wins."""
        if self.file:
            return (self.file,)
        own = os.environ.get("KUBECONFIG", "")
        return [Path(f) for f in own.split(os.pathsep) if f] or [Path.home() / ".kube" / "config"]

    def has_files(self) -> bool:
        """Whether at least one file exists, and each one that exists can be read repeatedly.

        Without a file, kubectl calls a server on this machine. A pipe is empty once kubectl has
        read it.
        """
        there = [file for file in self.files if is_there(file)]
        return bool(there) and all(file.is_file() for file in there)


def choice_of(file: Path | None, context: str) -> Choice:
    """The choice of a flag's file and context; a file equal to KUBECONFIG is kubectl's default."""
    own = os.environ.get("KUBECONFIG")
    return Choice(None if file and own and Path(own) == file else file, context)


def has_context(choice: Choice) -> bool:
    """Whether a context is chosen or current. Most files show it without parsing YAML.

    Without a context, kubectl calls a server on this machine, which may be any web server.
    """
    if choice.context or any(_CURRENT.search(text) for text in _texts(choice.files)):
        return True
    return current_context(choice) is not None


def current_namespace(choice: Choice) -> str:
    """The namespace of the current context, or the default one.

    Most files name no namespace. That is found without YAML, since importing its parser takes
    longer than the rest.
    """
    context = current_context(choice) if _may_say(choice.files, b"namespace") else None
    return (context or {}).get("namespace") or DEFAULT_NAMESPACE


def _may_say(files: Sequence[Path], key: bytes) -> bool:
    """Whether one of the files may contain the key, also with escapes, or in UTF-16."""
    return any(part in text for text in _texts(files) for part in (key, b"\\", b"\0"))


def _texts(files: Sequence[Path]) -> Sequence[bytes]:
    """Contents of the files that exist; nothing if one of them cannot be read."""
    try:
        return [file.read_bytes() for file in files if is_there(file)]
    except OSError:
        return ()


def has_login(choice: Choice) -> bool:
    """Whether the user has a credential plugin: it may ask for a password, and wait."""
    try:
        configs = list(_read(choice.files))
        name = (_context(configs, choice.context) or {}).get("user")
        user = _named(configs, "users", name) or {}
        return bool(user.get("exec") or user.get("auth-provider"))
    except _DAMAGED:
        return False


def current_context(choice: Choice) -> Mapping[str, Any] | None:
    """Cluster, user and namespace of the context; None if there is none, or it is unreadable."""
    try:
        return _context(list(_read(choice.files)), choice.context)
    except _DAMAGED:
        return None


_DAMAGED = (OSError, ValueError, KeyError, TypeError, AttributeError)


def _context(configs: Sequence[Mapping[str, Any]], name: str) -> Mapping[str, Any] | None:
    name = name or next((c["current-context"] for c in configs if c.get("current-context")), "")
    return _named(configs, "contexts", name)


def _named(configs: Sequence[Mapping[str, Any]], kind: str, name: Any) -> Mapping[str, Any] | None:
    """The first entry of this name among entries of a kind, such as `contexts`."""
    entries = (entry for config in configs for entry in config.get(kind) or ())
    return next((entry[kind.removesuffix("s")] for entry in entries if entry["name"] == name), None)


def _read(files: Sequence[Path]) -> Iterator[Mapping[str, Any]]:
    # Imported late: it takes a tenth of a whole command, and few commands need it.
    import yaml

    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    for file in files:
        if is_there(file):
            try:
                yield yaml.load(file.read_bytes(), Loader=loader) or {}
            except yaml.YAMLError as error:
                raise ValueError(f"{file}: {error}") from error
