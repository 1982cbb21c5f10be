"""A fake disk, for kills and failures between any two writes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from tests.fakes.killed import KilledError


@dataclass
class Disk:
    """Counts the steps of all its folders, and may stop before or fail at any of them.

    Attributes:
        kill_at: The step before which the process dies, counted from now; a dead process does
            nothing more until this is None again.
        fail: Says whether a write of so many bytes fails, as on a full disk.
    """

    kill_at: int | None = None
    fail: Callable[[str, int], bool] = lambda name, size: False
    steps: list[str] = field(default_factory=list)

    def step(self, what: str) -> None:
        if self.kill_at == 0:
            raise KilledError(what)
        if self.kill_at is not None:
            self.kill_at -= 1
        self.steps.append(what)


@dataclass
class FakeFolder:
    """`disk.Folder` in memory; it outlives a killed process as the real one does.

    Attributes:
        trouble: Why nothing can be written in it; "" if it can be.
    """

    disk: Disk
    files: dict[str, bytes] = field(default_factory=dict)
    trouble: str = ""
    _written: int = 0
    _signatures: dict[str, int] = field(default_factory=dict)

    def names(self) -> list[str]:
        return sorted(self.files)

    def problem(self, *, thoroughly: bool = False) -> str:
        return self.trouble

    def read(self, name: str) -> bytes | None:
        return self.files.get(name)

    def signature(self, name: str) -> object:
        return self._signatures.get(name) if name in self.files else None

    def write(self, name: str, content: bytes) -> None:
        self.disk.step(f"write {name}")
        if self.trouble:
            raise OSError(2, "No such file or directory")
        if self.disk.fail(name, len(content)):
            raise OSError(28, "No space left on device")
        self.files[name] = content
        self._written += 1
        self._signatures[name] = self._written
        self.disk.step(f"wrote {name}")

    def remove(self, name: str) -> None:
        self.disk.step(f"remove {name}")
        self.files.pop(name, None)
        self.disk.step(f"removed {name}")

    def rename(self, name: str, other: str) -> None:
        self.disk.step(f"rename {name} to {other}")
        self.files[other] = self.files.pop(name)
        self._written += 1
        self._signatures[other] = self._written
