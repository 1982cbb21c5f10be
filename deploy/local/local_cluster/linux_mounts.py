"""Mounts of the host, as far as a cluster is concerned: it should have none."""

from __future__ import annotations

from pathlib import Path

from local_cluster.errors import MachineError
from local_cluster.layout import OVERLAID_DIRS, RUN_DIR
from local_cluster.linux_commands import run

MOUNTS = Path("/proc/self/mountinfo")


def unmount_below(folder: Path) -> None:
    """Innermost first. Lazily, since what still uses a mount is being killed."""
    for target in reversed(mounts_below(folder)):
        run("umount", "--lazy", target)


def mounts_below(folder: Path) -> tuple[str, ...]:
    """Mount points at or below the folder, in the order in which they were made."""
    targets = [_unescaped(line.split()[4]) for line in MOUNTS.read_text().splitlines()]
    prefix = f"{folder}/"
    return tuple(target for target in targets if f"{target}/".startswith(prefix))


def require_usable(work_dir: Path) -> None:
    """A node sees these folders through an overlay, so the work folder cannot be inside."""
    if any(work_dir.is_relative_to(taken) for taken in (*OVERLAID_DIRS, RUN_DIR)):
        raise MachineError(f"{work_dir} is below a folder that nodes have for themselves")
    if set(str(work_dir)) & set(",:\\\"'\n"):
        raise MachineError(f"{work_dir}: mount options cannot carry its punctuation")


def _unescaped(path: str) -> str:
    """Mountinfo writes space, tab, newline and backslash as octal numbers."""
    return path.encode().decode("unicode_escape")
