"""Links on this node's disk, through which containers find the devices of Instances."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterable, Mapping
from contextlib import suppress
from pathlib import Path

from driver.api import InstanceName
from driver.plumbing.disk import remove_abandoned, temporary_in


class Links:
    """A folder of links for each Instance, so that the paths of containers stay the same.

    <root>/<Instance>/device-0 ──► /dev/video2, or a target that does not exist

    A dangling link has the reason in its target, which runtimes repeat in their error. The folder
    is in memory, like that of CDI files, so no link survives a reboot.
    """

    def __init__(self, root: Path) -> None:
        self._root = root

    def folder(self, instance: InstanceName) -> str:
        """The folder of an Instance's links, the same path on the host and in this process."""
        return str(self._root / instance)

    def have_targets(self, instance: InstanceName, targets: Mapping[str, str]) -> bool:
        """Whether an Instance's links have these targets already."""
        folder = self._root / instance
        return all(_target(folder / name) == target for name, target in targets.items())

    def write(self, instance: InstanceName, targets: Mapping[str, str]) -> None:
        """Write an Instance's links; its other links become dangling.

        Raises:
            OSError: A link cannot be written.
        """
        others = {
            name: _nowhere(instance, "has no such part now") for name in self._names(instance)
        }
        for name, target in {**others, **targets}.items():
            self._point(self._root / instance / name, target)

    def break_links(self, instance: InstanceName, why: str) -> None:
        """Make all links of an Instance dangling, so that no container starts. Raises OSError."""
        for name in self._names(instance):
            self._point(self._root / instance / name, _nowhere(instance, why))

    def instances(self) -> set[InstanceName]:
        """The Instances that have links."""
        return {InstanceName(n) for n in _listed(self._root) if not n.startswith(".")}

    def remove(self, instances: Iterable[InstanceName]) -> None:
        """Remove the links of these Instances, and files of killed processes. Raises OSError."""
        for name in instances:
            with suppress(FileNotFoundError):
                shutil.rmtree(self._root / name)
        remove_abandoned(str(self._root))

    def _names(self, instance: InstanceName) -> list[str]:
        return [n for n in _listed(self._root / instance) if not n.startswith(".")]

    def _point(self, link: Path, target: str) -> None:
        if _target(link) == target:
            return
        link.parent.mkdir(parents=True, exist_ok=True)
        temporary = Path(temporary_in(str(self._root)))
        temporary.symlink_to(target)
        try:
            if link.is_dir() and not link.is_symlink():
                with suppress(OSError):  # Another process may have removed it.
                    link.rmdir()  # A runtime makes a folder for a missing mount.
            temporary.replace(link)
        except OSError:
            temporary.unlink(missing_ok=True)
            raise


def _listed(folder: Path) -> list[str]:
    try:
        return sorted(os.listdir(folder))
    except FileNotFoundError:
        return []


def _target(link: Path) -> str | None:
    with suppress(OSError):
        return os.readlink(link)
    return None


def _nowhere(instance: InstanceName, why: str) -> str:
    return f"/dev/moorage.dev: the device of Instance {instance} {why}"
