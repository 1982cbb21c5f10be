"""Files as the cluster needs them: replaced atomically, locked across processes, waited for."""

from __future__ import annotations

import fcntl
import json
import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any


@contextmanager
def locked(path: Path) -> Iterator[None]:
    """Hold an exclusive lock; the kernel drops it when the holder dies."""
    descriptor = _open_locked(path)
    # Whoever held it before may have deleted the file: then the lock guards nothing any more.
    while not _is_file_at(descriptor, path):
        os.close(descriptor)
        descriptor = _open_locked(path)
    try:
        yield
    finally:
        os.close(descriptor)


def _open_locked(path: Path) -> int:
    path.parent.mkdir(parents=True, exist_ok=True)
    descriptor = os.open(path, os.O_CREAT | os.O_RDWR | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
    except BaseException:
        os.close(descriptor)
        raise
    return descriptor


def _is_file_at(descriptor: int, path: Path) -> bool:
    try:
        return os.path.samestat(os.fstat(descriptor), path.stat())
    except FileNotFoundError:
        return False


def write_atomically(path: Path, content: str | bytes, mode: int = 0o600) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    descriptor, temporary = tempfile.mkstemp(prefix=f".{path.name}.", dir=path.parent)
    with os.fdopen(descriptor, "wb") as file:
        file.write(content.encode() if isinstance(content, str) else content)
    Path(temporary).chmod(mode)
    Path(temporary).replace(path)


def write_json(path: Path, value: Any) -> None:
    write_atomically(path, json.dumps(value, indent=2, sort_keys=True) + "\n")


def read_json(path: Path) -> Any | None:
    """None when the file does not exist or was cut off by a crash."""
    try:
        return json.loads(path.read_text())
    except (FileNotFoundError, json.JSONDecodeError):
        return None


def tail(path: Path, lines: int = 15) -> str:
    try:
        return "\n".join(path.read_text(errors="replace").splitlines()[-lines:])
    except FileNotFoundError:
        return "(no log yet)"
