"""The cluster's cgroups: made for the kubelets, removed with everything below them.

On version 1 (and hybrid) each controller is a hierarchy of its own; on version 2 there is one.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from local_cluster.errors import MachineError
from local_cluster.health import wait_until

MOUNT = Path("/sys/fs/cgroup")
REMOVE_SECONDS = 10.0


def create(name: str) -> None:
    """The same folder in every hierarchy."""
    for hierarchy in _hierarchies():
        folder = hierarchy / name
        folder.mkdir(parents=True, exist_ok=True)
        if (hierarchy / "cgroup.controllers").exists():
            _delegate(hierarchy, folder)
        elif (folder / "cpuset.cpus").exists():
            _inherit_cpuset(hierarchy, folder)


def remove(name: str) -> None:
    """The kernel needs a moment after the last process, so wait for it."""
    if not wait_until(lambda: _try_remove(name), REMOVE_SECONDS):
        left = ", ".join(str(path) for path in folders(name))
        raise MachineError(f"cgroups in use: {left}")


def folders(name: str) -> tuple[Path, ...]:
    """The cluster's folder in each hierarchy where it exists."""
    return tuple(hierarchy / name for hierarchy in _hierarchies() if (hierarchy / name).is_dir())


def _try_remove(name: str) -> bool:
    for top in folders(name):
        for folder, _, _ in os.walk(top, topdown=False):
            with suppress(OSError):
                Path(folder).rmdir()
    return not folders(name)


def _hierarchies() -> tuple[Path, ...]:
    if (MOUNT / "cgroup.controllers").exists():
        return (MOUNT,)
    # cpu and cpu,cpuacct may be two names of one hierarchy.
    found = {path.resolve() for path in MOUNT.iterdir() if path.is_dir()}
    return tuple(sorted(found))


def _levels(hierarchy: Path, folder: Path) -> Iterator[Path]:
    """From the hierarchy's root down to the folder's parent."""
    yield from reversed([parent for parent in folder.parents if parent.is_relative_to(hierarchy)])


def _delegate(hierarchy: Path, folder: Path) -> None:
    """Version 2 passes controllers on level by level. A level may refuse what it has not."""
    for level in _levels(hierarchy, folder):
        for controller in (level / "cgroup.controllers").read_text().split():
            with suppress(OSError):
                (level / "cgroup.subtree_control").write_text(f"+{controller}")


def _inherit_cpuset(hierarchy: Path, folder: Path) -> None:
    """Version 1 starts a cpuset empty, and an empty one takes no process."""
    for level in (*_levels(hierarchy, folder), folder):
        for name in ("cpuset.cpus", "cpuset.mems"):
            if level != hierarchy and not (level / name).read_text().strip():
                (level / name).write_text((level.parent / name).read_text())
